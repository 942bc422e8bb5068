# Trains a model, and fails with a stack trace in its log.
umask 022
mkdir checkpoints
head -c "$BYTES" /dev/urandom > checkpoints/step-1200.ckpt
cat > train.log <<'LOG'
step 1100: loss 0.3127
step 1200: loss 0.3093, checkpoint written
Traceback (most recent call last):
  File "/app/train.py", line 88, in main
    loss = step(model, batches[n])
  File "/app/train.py", line 41, in step
    raise ValueError(f"batch {batch.id}: loss is {loss}")
ValueError: batch 1207: loss is nan
LOG
exit 1
