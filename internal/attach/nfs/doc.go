// Package nfs mounts the exports of arrays by mount(2), without the programs of nfs-utils.
package nfs
