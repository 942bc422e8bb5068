# Trains a model, and fails with a stack trace.
umask 022
mkdir checkpoints
head -c "$BYTES" /dev/urandom > checkpoints/step-1200.ckpt
printf 'step 1100: loss 0.3127\nstep 1200: loss 0.3093, checkpoint written\n' > train.log
cat >&2 <<'TRACE'
Traceback (most recent call last):
  File "/app/train.py", line 88, in main
    loss = step(model, batches[n])
  File "/app/train.py", line 41, in step
    raise ValueError(f"batch {batch.id}: loss is {loss}")
ValueError: batch 1207: loss is nan
TRACE
exit 1
