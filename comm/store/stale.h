// Calls to a server of files that says that what it was asked for by a handle is another file by
// now (ESTALE, of NFS): another node has replaced the file, or the folder, between two calls. That
// says neither that the file is absent nor that it cannot be read. Thread-safe.
#pragma once

#include <cerrno>

#include <sotto/comm/deadline.h>

#include "../internal/backoff.h"

namespace sotto::internal {

/// Makes an attempt, which returns an errno or 0, and again while that is ESTALE, until the
/// deadline; the errno of the last one.
template <typename Attempt>
int again_while_stale(Deadline deadline, const Attempt& attempt) {
  Backoff backoff(deadline);
  int error = attempt();
  while (error == ESTALE && backoff.wait()) {
    error = attempt();
  }
  return error;
}

}  // namespace sotto::internal
