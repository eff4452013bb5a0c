// The gradient of a caller, in a run whose nodes come and go: its parts, whether the model is still
// the one at which it is computed, and what becomes of it. Not for users.
//
// A plain value; one thread at a time.
#pragma once

#include <cstddef>
#include <optional>

#include <sotto/base/ids.h>
#include <sotto/optim/exchange/gradient_parts.h>
#include <sotto/sites/epochs/epoch_member.h>

namespace sotto {

class OwedStep {
 public:
  /// What a gradient came to.
  struct Made {
    double loss = 0;
    bool left_out = false;  ///< no mean has it
  };

  // The gradient that the caller computes.

  /// One that begins now is at the run's model, unless parts of it are there from before.
  void begin() { misses_ = !given_.empty(); }
  /// The run's model is another one now.
  void miss() { misses_ = true; }
  /// Whether the gradient is at another model than the run's.
  bool misses() const { return misses_; }
  /// Whether no part is there.
  bool empty() const { return given_.empty(); }
  /// Throws Error "gradient" where parts of it count.
  void require_no_parts() const;
  /// Throws Error where this part does not fit into a gradient of so many parameters.
  void require_part(std::size_t first, std::size_t elements, std::size_t parameters);
  /// Takes down a part.
  void add_part(std::size_t first, std::size_t elements) { given_.add(first, elements); }
  /// Throws Error "gradient" unless all parts are there.
  void require_all_parts(std::size_t parameters) const { given_.require_all(parameters); }
  /// The parts are a whole gradient, which is about to be given.
  void end_parts() { given_.clear(); }
  /// It is at another model than the run's, and left out.
  void leave_out();

  // The gradient that was given, until its step is made.

  /// The caller has given a gradient with this loss.
  void give(double loss) { pending_ = loss; }
  /// Whether one waits for its step.
  bool pending() const { return pending_.has_value(); }
  /// Throws Error "gradient" where one does.
  void require_none_pending() const;
  /// Throws Error "gradient" where none does.
  void require_pending() const;
  /// What became of it, if that is known and was not before.
  void note(const std::optional<sites::EpochOutcome>& outcome);
  /// Whether that is known.
  bool known() const { return outcome_.has_value(); }
  /// The run is given up after `step`: what is not known yet is left out, and parts are missed.
  void lose(Round step);
  /// Ends it. Requires known().
  Made take();

 private:
  GradientParts given_;  ///< parts of the gradient that the caller computes
  bool misses_ = false;
  std::optional<double> pending_;               ///< its loss
  std::optional<sites::EpochOutcome> outcome_;  ///< of the gradient that is pending
};

}  // namespace sotto
