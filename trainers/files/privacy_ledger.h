// A file that records how much of its privacy budget a node has spent. A run that crashed, or one
// that goes on from an old checkpoint, does not get the budget of steps sent before back.
//
// The file is text, one `name=value` a line: the mechanism, the steps, and a SHA-256 of the lines
// above. Steps are entered, durably, before they leave, kAhead at a time; after a crash the steps
// entered count as spent. Deleting the file, or restoring an old one, voids the promise of privacy.
//
// Thread safety: one thread at a time; one process a file.
#pragma once

#include <cstdint>
#include <string>

#include <sotto/base/status.h>
#include <sotto/optim/privacy/privacy_options.h>

namespace sotto {

class PrivacyLedger {
 public:
  /// Opens options.ledger, or starts it with the first entry. Throws Error when it is damaged or
  /// was kept for another mechanism.
  explicit PrivacyLedger(const PrivacyOptions& options);

  /// Whether the file existed before.
  bool existed() const { return existed_; }
  /// Steps entered.
  std::uint64_t steps() const { return steps_; }

  /// Makes sure that the file counts at least `steps`, of `allowed` in all. On a fault the step
  /// must not leave.
  Status enter(std::uint64_t steps, std::uint64_t allowed);
  /// Makes the file count exactly `steps`: no more have left.
  Status settle(std::uint64_t steps);

 private:
  Status write(std::uint64_t steps);

  static constexpr std::uint64_t kAhead = 16;
  std::string path_;
  std::string mechanism_;
  std::uint64_t steps_ = 0;
  bool existed_ = false;
};

}  // namespace sotto
