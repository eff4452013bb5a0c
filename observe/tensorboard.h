// A training run as a file of scalars for TensorBoard: all figures at each evaluation, the step
// being the round. As an observer.
#pragma once

#include <string>

#include <sotto/observe/growing_file.h>
#include <sotto/trainers/observer.h>

namespace sotto {

class TensorBoard final : public Observer {
 public:
  /// A new file in `folder`, which is made; what other runs wrote there stays. Throws Error when
  /// it cannot be, or this build cannot write such files. `tell`: growing_file.h.
  TensorBoard(const std::string& folder, Tell tell);

  bool wants_health() const override { return true; }
  void evaluated(const RunEvaluation& evaluation) override;

 private:
  GrowingFile file_;
};

}  // namespace sotto
