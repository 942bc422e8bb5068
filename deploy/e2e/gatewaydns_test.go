//go:build e2e

package e2e

import (
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// dnsAddress is the resolver of all pods: the first node's address.
const dnsAddress = "10.254.254.1:53"

// nodesService is the headless Service of the gateway that the daemons look for.
const nodesService = "katbox-gateway-nodes"

// serveDNS answers pods that ask for headless Services, as a cluster's DNS does.
func (c *cluster) serveDNS(services ...string) {
	c.t.Helper()
	conn, err := net.ListenPacket("udp", dnsAddress)
	if err != nil {
		c.t.Fatal(err)
	}
	var running sync.WaitGroup
	c.t.Cleanup(func() {
		conn.Close()
		running.Wait()
	})
	running.Go(func() {
		known := map[string][]netip.Addr{}
		var read time.Time
		buffer := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if time.Since(read) > time.Second {
				for _, service := range services {
					known[service+"."+namespace+".svc"] = c.endpoints(service)
				}
				read = time.Now()
			}
			if answer, err := resolve(buffer[:n], known); err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	})
}

// endpoints are the addresses of a Service that are ready.
func (c *cluster) endpoints(service string) (addresses []netip.Addr) {
	out, err := c.tryKubectl("", "-n", namespace, "get", "endpointslices", "-l", "kubernetes.io/service-name="+service,
		"-o", `jsonpath={range .items[*].endpoints[?(@.conditions.ready==true)]}{.addresses[0]}{"\n"}{end}`)
	if err != nil {
		return nil
	}
	for text := range strings.FieldsSeq(out) {
		if address, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// resolve answers a question by the addresses that names have.
func resolve(question []byte, known map[string][]netip.Addr) ([]byte, error) {
	var asked dnsmessage.Message
	if err := asked.Unpack(question); err != nil || len(asked.Questions) != 1 {
		return nil, err
	}
	q := asked.Questions[0]
	answer := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: asked.ID, Response: true, Authoritative: true, RecursionDesired: asked.RecursionDesired},
		Questions: asked.Questions,
	}
	addresses := known[strings.TrimSuffix(strings.TrimSuffix(q.Name.String(), "."), ".cluster.local")]
	switch {
	case len(addresses) == 0:
		answer.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		for _, address := range addresses {
			answer.Answers = append(answer.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1},
				Body:   &dnsmessage.AResource{A: address.As4()},
			})
		}
	}
	return answer.Pack()
}
