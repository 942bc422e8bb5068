# Imports rows into the volume, and succeeds.
umask 022
head -c "$BYTES" /dev/urandom > rows.parquet
echo "imported $BYTES bytes" > import.log
