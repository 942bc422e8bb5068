package edge

import (
	"fmt"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/internal/model/volume"
)

// Stats returns the answer to NodeGetVolumeStats. What has no fixed number of inodes, as a block device
// has none, reports none. A volume that is too broken to be measured is volume.ErrUnavailable: zeros would be taken for its
// size.
func Stats(s volume.Stats) (*csi.NodeGetVolumeStatsResponse, error) {
	if s.Abnormal && s.Space == (volume.Space{}) {
		return nil, fmt.Errorf("%w: %s", volume.ErrUnavailable, s.Condition)
	}
	usage := []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: s.Space.Total.Bytes, Available: s.Space.Free.Bytes, Used: s.Used.Bytes},
	}
	if s.Space.Total.Inodes > 0 {
		usage = append(usage, &csi.VolumeUsage{
			Unit: csi.VolumeUsage_INODES, Total: s.Space.Total.Inodes, Available: s.Space.Free.Inodes, Used: s.Used.Inodes,
		})
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: usage}, nil
}

const (
	// Reasons of a volume's health.
	reasonReadOnly = "ReadOnly"
	reasonUnusable = "Unusable"
	// maxMessage is the longest message that the API server takes in a pod's status.
	maxMessage = 1024
)

// Health returns the answer to NodeGetVolumeHealth. One that has no problem has no entry.
func Health(id string, s volume.Stats) *csi.NodeGetVolumeHealthResponse {
	health := &csi.VolumeHealth{VolumeId: id}
	if s.Abnormal {
		entry := &csi.VolumeHealth_VolumeHealthEntry{
			Status: csi.VolumeHealthErrorType_INACCESSIBLE, Reason: reasonUnusable,
			Message: strings.ToValidUTF8(s.Condition[:min(len(s.Condition), maxMessage)], ""),
		}
		if s.Readable {
			entry.Status, entry.Reason = csi.VolumeHealthErrorType_DEGRADED, reasonReadOnly
		}
		health.HealthStatuses = append(health.HealthStatuses, entry)
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: health}
}

// PoolsPlugin returns the answer to GetPluginCapabilities for volumes on arrays, of the controller and of
// the nodes, which are one plugin: there is a controller service, and volumes grow while they are in use. more is
// what only volumes on nodes have.
func PoolsPlugin(more ...csi.PluginCapability_Service_Type) *csi.GetPluginCapabilitiesResponse {
	resp := &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
			Type: csi.PluginCapability_Service_CONTROLLER_SERVICE,
		}}},
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		}}},
	}}
	for _, service := range more {
		resp.Capabilities = append(resp.Capabilities,
			&csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: service}}})
	}
	return resp
}

// NodeCapabilities returns the answer to NodeGetCapabilities.
func NodeCapabilities(can ...csi.NodeServiceCapability_RPC_Type) *csi.NodeGetCapabilitiesResponse {
	var resp csi.NodeGetCapabilitiesResponse
	for _, capability := range can {
		resp.Capabilities = append(resp.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: capability}},
		})
	}
	return &resp
}
