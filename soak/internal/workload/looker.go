package workload

// Looker is the pod that attaches a volume of another pod, beyond the pods of the plan.
// Its only volume has no data of its own.
func (p Plan) Looker(source Pod, v Volume) Pod {
	r := p.stream("looker "+v.Name, uint64(source.Index))
	const name = "look"
	uid := newUID(r)
	return Pod{
		Index: p.workload.Pods, UID: uid, Namespace: source.Namespace, Name: source.Name + "-" + v.Name + "-look",
		Volumes: []Volume{{
			Name: name, ID: volumeID(name, uid), ReadOnly: true, Content: v.Content,
			Attributes: map[string]string{AttributeAttach: source.UID + "/" + v.Name},
			Publish:    p.call(r), Unpublish: p.call(r),
		}},
	}
}

// AttributeAttach is the attribute by which a pod attaches a volume of another.
const AttributeAttach = "attach"

// Attaches reports whether the volume is one of another pod, and has no data of its own.
func (v Volume) Attaches() bool { return v.Attributes[AttributeAttach] != "" }
