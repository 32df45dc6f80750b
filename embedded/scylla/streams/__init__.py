"""CDC streams of the embedded ScyllaDB: ids, the vnode ring with its generations, the stream sets of
tablets."""
