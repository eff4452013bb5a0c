#include <sotto/trainers/launch/local_processes.h>

#include <csignal>

#include <sotto/base/error.h>
#include <sotto/comm/deadline.h>
#include <sotto/trainers/run.h>

#include "../internal/launch/child_processes.h"

namespace sotto {
namespace {

using std::chrono::milliseconds;

/// How often the parent looks whether it should stop.
constexpr int kSliceMs = 100;
/// Time between SIGTERM and SIGKILL.
constexpr milliseconds kTermGrace{500};

}  // namespace

Status run_processes(int nodes, const NodeMain& node_main, const std::atomic<bool>& stop,
                     milliseconds grace, milliseconds farewell) {
  check_local_nodes(nodes);
  internal::ChildProcesses children(node_main);
  children.fork_all(nodes);
  while (children.running() > 0 && !children.any_failed() && !stop) {
    children.look(kSliceMs);
  }
  // What others say after this moment, because they are told to end, explains nothing.
  const auto patience = Deadline::after(stop ? milliseconds(0) : grace);
  while (children.running() > 0 && !patience.expired() && !stop && !children.wrong_request()) {
    children.look(kSliceMs);
  }
  Status verdict = children.verdict();
  children.end_all(SIGTERM);
  const auto last_chance = Deadline::after(stop ? farewell : kTermGrace);
  while (children.running() > 0 && !last_chance.expired()) {
    children.look(kSliceMs);
  }
  if (const auto request = children.wrong_request()) {
    throw Error(*request);
  }
  if (stop) {
    return {Fault::stopped, std::string(kStopped)};
  }
  return verdict;
}

}  // namespace sotto
