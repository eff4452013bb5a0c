// Tries a guarded socket as its peers and as strangers would, before anybody relies on it.
// Thread-safe.
#pragma once

#include <string>

#include <sotto/base/status.h>
#include <sotto/comm/trust/keys.h>

namespace sotto::internal {

/// Connects to `endpoint`, a guarded socket of this process whose key pair is `own`. OK when `own`
/// is let in, and all of these are not: a key made for the occasion, and greetings without
/// encryption in every version and mechanism that ZeroMQ ever had. Fault::unexpected says which
/// client was let in, or that none is; Fault::io that it cannot be tried.
Status probe_admission(const std::string& endpoint, const KeyPair& own);

}  // namespace sotto::internal
