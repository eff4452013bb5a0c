// The key that all nodes of one run share, when one operator owns them all.
//
// A process that has the key can be any node of the run: each node's own keys follow from the run's
// key and the node's name, so that all know each other's without a list. Strangers are kept out;
// the nodes themselves trust each other.
//
// Thread safety: plain values. Ownership: the secret's memory is that of a PrivateKey.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <sotto/comm/trust/keys.h>

namespace sotto {

class RunKey {
 public:
  /// The run's key is the secret half of this pair, a file of which every node has
  /// (`sotto keygen`).
  explicit RunKey(const KeyPair& shared) : secret_(shared.private_key) {}
  /// The key of a run without a secret: everybody knows it, and it keeps nobody out.
  static RunKey open();

  /// Whether everybody knows it.
  bool is_open() const { return open_; }
  /// The keys of the node of this name, the same at all that have the run's key.
  KeyPair node_keys(std::string_view name) const;
  /// A key of 32 bytes for another purpose, which tells nothing of the others.
  PrivateKey derived(std::string_view purpose) const;

 private:
  RunKey(PrivateKey secret, bool open) : secret_(std::move(secret)), open_(open) {}

  PrivateKey secret_;
  bool open_ = false;
};

}  // namespace sotto
