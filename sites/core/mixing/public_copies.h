// The copies of models that sites follow in public: what only gossip has (gossip_mixing.h).
//
// A building block of Site, not for users. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>

namespace sotto::sites {

class PublicCopies {
 public:
  /// The whole copy is due from this peer.
  virtual bool wants_whole(std::size_t peer) const = 0;
  /// The public copy, as Site::public_copy gives it.
  virtual std::span<const float> public_copy(std::optional<std::size_t> peer) const = 0;
  /// The version of that copy; 0 where there is none.
  virtual std::uint64_t version(std::optional<std::size_t> peer) const = 0;
  /// Appends the copy of one peer.
  virtual void save_peer(std::size_t peer, ByteBuffer& out) const = 0;
  /// Takes back what save_peer wrote.
  virtual Status load_peer(std::size_t peer, ByteReader& in) = 0;

 protected:
  ~PublicCopies() = default;
};

}  // namespace sotto::sites
