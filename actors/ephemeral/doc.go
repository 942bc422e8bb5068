// Package ephemeral is the first kind of volumes: a pod's inline volumes, which are retained for a
// lifespan after the pod is gone. [Node] is its front. Behind it are
//
//   - volumes, which owns all volumes in the supervisor's turn. Its retention keeps those that sleep
//     as records, and next decides which of them goes next;
//   - one volume actor for each volume that is mounted or changing, which carries out one operation
//     at a time (task: publish, unpublish, delete);
//   - the disk actor, which erases what lies in the trash and measures the file system;
//   - the sizes actor, which measures how much space the retained volumes take;
//   - watch, which looks for pods that the kubelet forgot and for data directories without a record.
package ephemeral
