#include <sotto/study/simulation/stretches.h>

#include <utility>

namespace sotto::study {

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::compute:
      return "compute";
    case Phase::codec:
      return "codec";
    case Phase::wire:
      return "wire";
    default:
      return "idle";
  }
}

StretchJoiner::StretchJoiner(int nodes, std::function<void(const Stretch&)> sink)
    : sink_(std::move(sink)), open_(static_cast<std::size_t>(nodes)) {
  for (Rank node = 0; node < nodes; ++node) {
    open_[static_cast<std::size_t>(node)].node = node;
  }
}

void StretchJoiner::phase(Rank node, Phase phase, SimTime from, SimTime until) {
  Stretch& open = open_[static_cast<std::size_t>(node)];
  if (open.phase != phase || open.until != from) {
    flush(node);
    open.phase = phase;
    open.from = from;
  }
  open.until = until;
}

void StretchJoiner::entry(const TraceEntry& entry) {
  if (entry.kind == TraceEntry::Kind::computed || entry.kind == TraceEntry::Kind::ended) {
    flush(entry.node);
  } else if (entry.kind == TraceEntry::Kind::finished) {
    flush(entry.node);
    ++open_[static_cast<std::size_t>(entry.node)].round;
  }
}

void StretchJoiner::flush(Rank node) {
  Stretch& open = open_[static_cast<std::size_t>(node)];
  if (open.until > open.from) {
    sink_(open);
  }
  open.from = open.until;
}

void StretchJoiner::flush() {
  for (const Stretch& open : open_) {
    flush(open.node);
  }
}

}  // namespace sotto::study
