// How a vector is cut into runs of which the largest magnitudes are kept, ⌈KEEP × length⌉ of each,
// and what their indices cost. A plain value; thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "chunks.h"
#include "keep.h"
#include "rice.h"

namespace sotto::internal {

class KeptRuns {
 public:
  /// Runs of `length` elements, the last of what is left; 0 makes the whole vector one run.
  KeptRuns(std::size_t elements, std::size_t length, double keep_ratio)
      : runs_(elements, length, 1),
        whole_(elements / std::max<std::size_t>(runs_.longest(), 1)),
        last_size_(elements - whole_ * runs_.longest()),
        kept_(kept_elements(keep_ratio, runs_.longest())),
        last_kept_(kept_elements(keep_ratio, last_size_)),
        p_(rice_parameter(kept_, runs_.longest())) {}

  std::size_t count() const { return runs_.count(); }
  std::size_t first(std::size_t run) const { return runs_.first(run); }
  /// One past the last element of the runs before `run`.
  std::size_t end(std::size_t run) const { return runs_.end(run); }
  std::size_t size(std::size_t run) const { return runs_.size(run); }

  /// How many elements of `run` are kept.
  std::size_t kept(std::size_t run) const { return run < whole_ ? kept_ : last_kept_; }
  /// How many elements of the runs before `run` are kept.
  std::size_t kept_before(std::size_t run) const {
    return std::min(run, whole_) * kept_ + (run > whole_ ? last_kept_ : 0);
  }
  std::size_t total() const { return kept_before(count()); }

  /// The Rice parameter of all runs, from the length of the longest.
  int rice() const { return p_; }
  /// Bits that the indices take at most, whatever they are. A run that is kept whole takes none.
  std::uint64_t index_bits_bound() const {
    return whole_ * bits_bound(kept_, runs_.longest()) + bits_bound(last_kept_, last_size_);
  }

  /// The smallest f(kept, size) over all runs; `f` is given doubles. Requires a run.
  template <typename Function>
  double least(const Function& f) const {
    const double whole = f(static_cast<double>(kept_), static_cast<double>(runs_.longest()));
    return last_size_ == 0 ? whole
                           : std::min(whole, f(static_cast<double>(last_kept_),
                                               static_cast<double>(last_size_)));
  }

 private:
  std::uint64_t bits_bound(std::size_t kept, std::size_t size) const {
    return kept == size ? 0 : rice_bits_bound(kept, size, p_);
  }

  Chunks runs_;
  std::size_t whole_;      ///< runs of full length
  std::size_t last_size_;  ///< length of the shorter run behind them; 0: none
  std::size_t kept_;
  std::size_t last_kept_;
  int p_;
};

}  // namespace sotto::internal
