# Serves until the pod is deleted, and writes a line for each request.
umask 022
head -c "$BYTES" /dev/urandom > cache
n=0
while :; do
	n=$((n + 1))
	echo "request $n" >> access.log
	sleep 0.05 || sleep 1
done
