// The server of a local job's values: answers the processes that hand it their connections.
//
// Thread safety: none; it is a process of its own. Ownership: the values, and the connections.
#pragma once

namespace sotto::internal {

/// Serves until `line` ends or a byte without a descriptor comes over it. A byte with one brings a
/// connection.
void serve_local_store(int line);

}  // namespace sotto::internal
