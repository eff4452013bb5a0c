// How the links of a network change of themselves: the changes that its platform plans and the
// steps of the links' traces, each as an event of the queue.
//
// One thread at a time. The queue outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sotto/sim/event_queue.h>
#include <sotto/sim/network/link_traces.h>
#include <sotto/sim/network/network.h>

namespace sotto {

class LinkEvents {
 public:
  /// Puts all changes of `platform` and the first step of each trace into the queue.
  LinkEvents(const Platform& platform, EventQueue& queue)
      : queue_(queue), changes_(platform.changes()), traces_(platform) {
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      queue_.push({.time = changes_[i].at,
                   .subject = static_cast<std::uint32_t>(i),
                   .kind = Network::link_changes});
    }
    for (std::uint32_t number = 0; number < traces_.size(); ++number) {
      expect_step(number);
    }
  }

  /// Whether the event is of these.
  static bool takes(const Event& event) {
    return event.kind == Network::link_changes || event.kind == Network::trace_steps;
  }
  /// What an event that it takes makes of a link, from now on.
  LinkChange take(const Event& event) {
    if (event.kind == Network::link_changes) {
      return changes_[event.subject];
    }
    --steps_queued_;
    const LinkChange step = traces_.step(event.subject);
    expect_step(event.subject);
    return step;
  }
  /// Whether a trace of the link has a step that is still to begin.
  bool steps_later(LinkId link) const { return traces_.steps_later(link); }
  /// Steps that are in the queue.
  std::size_t steps_queued() const { return steps_queued_; }

 private:
  /// Puts the next step of a trace into the queue, if there is one.
  void expect_step(std::uint32_t number) {
    if (const SimTime next = traces_.next(number); next != kNever) {
      queue_.push({.time = next, .subject = number, .kind = Network::trace_steps});
      ++steps_queued_;
    }
  }

  EventQueue& queue_;
  std::vector<LinkChange> changes_;
  LinkTraces traces_;
  std::size_t steps_queued_ = 0;
};

}  // namespace sotto
