// A node's identity and the peers that it trusts. Plain values; AllowList says which thread may
// use it.
#pragma once

#include <memory>

#include <sotto/comm/trust/allow_list.h>
#include <sotto/comm/trust/keys.h>

namespace sotto {

/// Keys and peers of a secure transport or store: all traffic is encrypted, and only listed keys
/// are accepted.
struct Security {
  KeyPair own;
  std::shared_ptr<AllowList> peers;
};

}  // namespace sotto
