package dataloss

import (
	"os"
	"path/filepath"

	"google.golang.org/grpc/codes"
)

// reservedNames: what the daemon keeps in the working directory beside the
// volumes is nobody's volume and no pod.
func reservedNames(n *node) error {
	running := n.live()
	for _, name := range []string{".trash", ".katbox.db", "..", "", "a/b"} {
		id, pod := n.volume(), n.volume()
		id.id, pod.pod = name, name
		n.answers(codes.InvalidArgument, n.publish(id))
		n.answers(codes.InvalidArgument, n.unpublish(id))
		n.answers(codes.InvalidArgument, n.publish(pod))
		n.is(!exists(id.target) && !exists(pod.target), "the name %q made a target", name)
	}
	n.passDeadline()
	n.is(exists(filepath.Join(n.layout.Work, ".trash")) && exists(filepath.Join(n.layout.Work, ".katbox.db")),
		"the trash or the records are gone")
	n.restart()
	n.isPublished(running)
	if err := n.lost(); err != nil {
		return err
	}
	return n.ends(running)
}

// namesOfOthers: a volume has an ID that is the name of something else, and is
// a volume as any other.
func namesOfOthers(n *node) error {
	running := n.live()
	n.file(filepath.Join(n.layout.Work, "lost+found", "#12", "file"))
	n.file(filepath.Join(n.layout.Work, "deletedVolumes.db"))
	var odd []vol
	for i, id := range []string{running.pod, "lost+found", "deletedVolumes.db", "work", "file", "mount"} {
		v := n.volumeOf("odd-"+string(rune('a'+i)), id)
		n.answers(codes.OK, n.publish(v))
		n.write(v)
		odd = append(odd, v)
	}
	for _, v := range odd {
		if err := n.lost(); err != nil {
			return err
		}
		n.answers(codes.OK, n.unpublish(v))
		n.expendable(v)
	}
	for _, v := range odd {
		n.expires(v)
	}
	n.isPublished(running)
	if err := n.lost(); err != nil {
		return err
	}
	return n.ends(running)
}

// podLostAndFound: on a file system of its own, the working directory has what
// fsck has found. No pod is called so, and what is in there is no volume.
func podLostAndFound(n *node) error {
	v := n.volumeOf("lost+found", "#12")
	found := filepath.Join(v.data, "found by fsck")
	n.file(found)
	n.answers(codes.InvalidArgument, n.publish(v))
	n.answers(codes.OK, n.unpublish(v))
	n.passDeadline()
	return n.lost()
}

// strangers: somebody put things into the working directory that are no data
// directories, before the daemon started.
func strangers(n *node) error {
	n.kill()
	work, foreign := n.layout.Work, n.foreign.Directory(0)
	n.file(filepath.Join(work, "a file"))
	n.file(filepath.Join(work, "a pod", "a file"))
	n.file(filepath.Join(work, "a pod", ".hidden", "file"))
	n.file(filepath.Join(work, ".hidden", "directory", "file"))
	n.file(filepath.Join(work, "lost+found", "#12", "file"))
	n.try(os.Symlink(foreign, filepath.Join(work, "a link")), os.Symlink(foreign, filepath.Join(work, "a pod", "a link")))
	n.file(filepath.Join(work, "a pod", "a directory", "file"))
	// Only this is a volume, of which there is no record. With it all were looked at.
	orphan := n.volume()
	n.try(os.MkdirAll(orphan.data, 0o755))
	n.start()
	n.expires(orphan)
	n.passDeadline()
	n.restart()
	n.is(exists(filepath.Join(work, "a link")) && exists(filepath.Join(work, "a pod", "a link")), "a symlink is gone")
	return n.lost()
}
