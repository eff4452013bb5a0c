// A node's run of a program (groups/program.h) whose stages make all that they work on: connects
// the node to the others, and plays round after round. Where rounds begin with a gradient of the
// caller's, or a Driver is to have options of its own, make a Driver (driver.h).
//
// Thread safety: one thread. Ownership: the parameters are the caller's and must outlive the run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/comm/store.h>
#include <sotto/comm/transport.h>
#include <sotto/groups/program.h>
#include <sotto/groups/program_gradient.h>
#include <sotto/trainers/driver.h>

namespace sotto {

/// How the nodes of a program meet.
struct ProgramMeeting {
  std::shared_ptr<Store> store;      ///< the store where the nodes find each other
  std::string transport = "inproc";  ///< name of a transport (comm/transport.h)
};

namespace internal {

/// The rounds of an algorithm that is a program, whatever program that is.
class ProgramRounds {
 public:
  /// Connects nothing yet.
  ProgramRounds(std::unique_ptr<Algorithm> node, const ProgramSetup& setup, ProgramMeeting meeting);

  Status step();
  Status finish();

 private:
  Status connect();

  std::unique_ptr<Algorithm> node_;
  Rank rank_;
  int nodes_;
  ProgramMeeting meeting_;
  std::vector<float> input_;  ///< zeros: the program makes its own gradients
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Driver> driver_;
  Status failed_;  ///< fault of connecting
};

}  // namespace internal

/// A run of a program of type P, a Program or, with a GroupAlgorithm, a GradientProgram.
template <typename P>
class ProgramRun {
 public:
  /// Builds the node's program; throws Error for what is refused.
  using Build = std::function<std::unique_ptr<P>(const ProgramNode&)>;

  /// Throws Error as ProgramAlgorithm.
  ProgramRun(
      const ProgramSetup& setup, ProgramMeeting meeting,
      const Build& build = [](const ProgramNode& node) { return std::make_unique<P>(node); })
      : rounds_(make<ProgramAlgorithm>(setup, build), setup, std::move(meeting)) {}
  /// Throws Error as ProgramGradient; `algorithm` takes the program's gradients.
  ProgramRun(
      const ProgramSetup& setup, ProgramMeeting meeting, const GroupAlgorithm& algorithm,
      const Build& build = [](const ProgramNode& node) { return std::make_unique<P>(node); })
      : rounds_(make<ProgramGradient>(setup, build, algorithm), setup, std::move(meeting)) {}
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  /// One round. The first call connects; a transport that is refused throws Error. The first fault
  /// ends the run: every later call returns it again.
  Status step() { return rounds_.step(); }
  /// Waits until the exchanges of all rounds are done.
  Status finish() { return rounds_.finish(); }
  /// The program, whose state is that of the rounds that are over.
  const P& program() const { return *program_; }
  /// What the program sends and receives in a round (ProgramAlgorithm::volume).
  const ExchangeVolume& volume() const { return volume_; }

 private:
  template <typename Node, typename... More>
  std::unique_ptr<Algorithm> make(const ProgramSetup& setup, const Build& build,
                                  const More&... more) {
    auto node = std::make_unique<Node>(
        setup,
        [&](const ProgramNode& at) {
          auto made = build(at);
          program_ = made.get();
          return made;
        },
        more...);
    volume_ = node->volume();
    return node;
  }

  const P* program_ = nullptr;
  ExchangeVolume volume_;
  internal::ProgramRounds rounds_;
};

}  // namespace sotto
