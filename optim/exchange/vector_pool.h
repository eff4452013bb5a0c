// Vectors that the nodes of a simulation lend each other: of many nodes few need, at one time, a
// vector that lives from one call of an algorithm to a later one.
//
// A building block of the algorithms, not for users. One thread at a time. The pool owns what is
// not lent, and must outlive the nodes.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <sotto/kernels/vector.h>

namespace sotto {

class VectorPool {
 public:
  /// A vector of `count` elements with any values.
  Vector lend(std::size_t count, const Ops& ops) {
    if (spare_.empty() || spare_.back().size() != count || &spare_.back().ops() != &ops) {
      return {count, ops};
    }
    Vector lent = std::move(spare_.back());
    spare_.pop_back();
    return lent;
  }
  /// Takes one that was lent; of very many it gives the memory back.
  void give_back(Vector vector) {
    if (spare_.size() < kMostSpare) {
      spare_.push_back(std::move(vector));
    }
  }

 private:
  static constexpr std::size_t kMostSpare = 16;

  std::vector<Vector> spare_;
};

/// A vector that an algorithm needs between two of its calls, and not after: its own, or from a
/// pool.
class LentVector {
 public:
  /// `count` elements; with a pool, which may be null, they take no memory until they are needed.
  LentVector(std::size_t count, const Ops& ops, VectorPool* pool)
      : pool_(pool), count_(count), ops_(ops) {
    if (pool == nullptr) {
      vector_ = Vector(count, ops);
    }
  }

  /// The vector, for use until give_back: what was written to it stays until then.
  std::span<float> use() {
    if (vector_.empty() && count_ > 0) {
      vector_ = pool_->lend(count_, ops_);
    }
    return vector_;
  }
  /// What stands in the vector is not needed any more.
  void give_back() {
    if (pool_ != nullptr && !vector_.empty()) {
      pool_->give_back(std::exchange(vector_, {}));
    }
  }

 private:
  VectorPool* pool_;
  std::size_t count_;
  const Ops& ops_;
  Vector vector_;
};

}  // namespace sotto
