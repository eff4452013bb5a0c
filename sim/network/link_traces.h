// The traces of a platform's links, each at the step that holds now.
//
// One thread at a time. Shares the traces with the platform.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <sotto/sim/network/link_trace.h>
#include <sotto/sim/network/platform.h>

namespace sotto {

class LinkTraces {
 public:
  /// Traces of the links of `platform` that have one, each where it starts.
  explicit LinkTraces(const Platform& platform) {
    for (LinkId id = 0; id < platform.links().size(); ++id) {
      if (const auto& traced = platform.links()[id].trace) {
        all_.push_back({id, traced, StepCursor(traced->trace->steps, traced->start)});
      }
    }
  }

  /// Traces are numbered from 0.
  std::uint32_t size() const { return static_cast<std::uint32_t>(all_.size()); }
  /// The link that a trace is of.
  LinkId link(std::uint32_t number) const { return all_[number].link; }
  /// The time when the next step of a trace begins; kNever: none does.
  SimTime next(std::uint32_t number) const { return all_[number].cursor.next(); }
  /// Begins the next step, and returns what it makes of the link. Requires next(number) ≠ kNever.
  LinkChange step(std::uint32_t number) {
    Traced& one = all_[number];
    const SimTime begins = one.cursor.next();
    one.cursor.advance();
    const LinkTrace& trace = *one.traced->trace;
    const std::size_t step = one.cursor.step();
    return {.at = begins,
            .link = one.link,
            .bytes_per_s = one.traced->times * trace.bytes_per_s[step],
            .latency = trace.latency.empty() ? 0 : trace.latency[step]};
  }
  /// Whether the link has a trace with a step that is still to begin.
  bool steps_later(LinkId link) const {
    return std::ranges::any_of(all_, [link](const Traced& one) {
      return one.link == link && one.cursor.next() != kNever;
    });
  }

 private:
  struct Traced {
    LinkId link = 0;
    std::shared_ptr<const TracedLink> traced;
    StepCursor cursor;
  };

  std::vector<Traced> all_;
};

}  // namespace sotto
