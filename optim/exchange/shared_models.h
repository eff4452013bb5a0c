// Vectors that several nodes of a simulation hold with the same bits, each once: a replica is what
// its owner has, as long as that has made no later step, and one copy for all holders afterwards.
//
// A vector is known by its owner and its version (replica.h), so that a holder which takes an
// update that another one has taken needs not decode it. Vectors are the host's.
//
// Not for users. One thread at a time. Holders own the copies; owners outlive all holders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/kernels/vector.h>

namespace sotto {

/// One vector, as several nodes of a simulation hold it.
struct SharedModel {
  std::span<const float> values;  ///< the owner's own vector, or `copy`
  Vector copy;                    ///< empty while `values` are the owner's own
  std::uint64_t version = 0;      ///< the vector's version
};

class SharedModels {
 public:
  using Held = std::shared_ptr<SharedModel>;  ///< by all that hold it

  /// A model from which all start, as a holder needs it: those that start alike share one copy.
  Held start(std::span<const float> values, const Ops& ops);
  /// The owner's vector is of this version from now on, until `leave`.
  Held publish(Rank owner, std::uint64_t version, std::span<const float> values);
  /// The owner's vector, which it published last as `own`, is about to change: holders get a copy.
  static void leave(Held& own, const Ops& ops);
  /// The owner's vector in a version; null: nobody has it.
  Held find(Rank owner, std::uint64_t version) const;
  /// Makes `held` a copy that nobody else holds, to be written to.
  static std::span<float> own(Held& held, std::size_t count, const Ops& ops);
  /// A copy that was written to is the owner's vector in this version now.
  void add(Rank owner, std::uint64_t version, const Held& held);

 private:
  std::weak_ptr<SharedModel> start_;
  std::map<Rank, std::vector<std::weak_ptr<SharedModel>>> by_owner_;
};

}  // namespace sotto
