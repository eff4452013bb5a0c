#include "process_talk.h"

#include <utility>

#include <fmt/format.h>

#include "places.h"

namespace sotto::sites {

ProcessTalk::ProcessTalk(WorldState& state, Liars& liars, Advance advance)
    : state_(state),
      liars_(liars),
      advance_(std::move(advance)),
      polls_while_busy_(state.random.below(2) == 0) {}

void ProcessTalk::tell(ProcessId id, ChannelNews news) {
  Process& process = state_.processes[id];
  if (!process.alive) {
    return;
  }
  std::optional<Handed> parcel;
  if (news.kind == ChannelNews::Kind::message) {
    parcel = state_.audit.recognize(process, state_.processes[news.from], news.message);
  }
  process.inbox.push_back({std::move(news), parcel});
  drain(process);
}

void ProcessTalk::drain(Process& process) {
  const auto may_poll = [&] {
    const bool busy =
        process.phase == ProcessPhase::computing || process.phase == ProcessPhase::writing;
    return process.running() && (polls_while_busy_ || !busy);
  };
  if (process.draining) {
    return;  // what it does about one thing may bring about the next
  }
  process.draining = true;
  bool heard = false;
  while (may_poll() && !process.inbox.empty()) {
    const Incoming incoming = std::move(process.inbox.front());
    process.inbox.pop_front();
    hear(process, incoming);
    heard = true;
  }
  process.draining = false;
  if (heard && process.running()) {
    advance_(process);
  }
}

void ProcessTalk::hear(Process& process, const Incoming& incoming) {
  const ChannelNews& news = incoming.news;
  const auto place = place_of(news.peer, process.listed);
  if (!place) {
    return;  // it has left the list meanwhile
  }
  WireId& channel = process.channels[*place];
  if (news.kind == ChannelNews::Kind::up) {
    state_.begin_event(process.site, "a channel's coming up");
    state_.note(SimulatedSiteEvent::Kind::up, process.site, news.peer);
    channel = news.connection;
    process.node->peer_up(*place);
  } else if (channel != news.connection) {
    return;  // of a connection that it has given up
  } else if (news.kind == ChannelNews::Kind::down) {
    state_.begin_event(process.site, "a channel's going down");
    state_.note(SimulatedSiteEvent::Kind::down, process.site, news.peer);
    channel = kNoWire;
    process.node->peer_down(*place);
  } else {
    state_.begin_event(process.site, "a message");
    state_.note(SimulatedSiteEvent::Kind::received, process.site, news.peer, news.message.size());
    state_.audit.delivers(process, incoming);
    // A fault asks for the channel to be closed, and shows in the peer's state.
    (void)process.access->receive(*place, news.message);
  }
  state_.observe(process);
  if (still_alive(process)) {
    flush(process);
  }
}

void ProcessTalk::flush(Process& process) {
  if (process.phase == ProcessPhase::writing) {
    return;
  }
  for (const Released& released : process.access->released()) {
    const Rank peer = process.listed[released.peer];
    if (released.hang_up) {
      state_.wires.close(process.id, process.channels[released.peer], state_.plan.reconnect);
      continue;
    }
    std::vector<std::byte> message = released.bytes();
    state_.audit.releases(process, peer, message);
    for (const std::vector<std::byte>& said :
         liars_.in_place_of(std::move(message), process.site)) {
      state_.note(SimulatedSiteEvent::Kind::sent, process.site, peer, fingerprint(said));
      state_.wires.send(process.id, process.channels[released.peer], said);
    }
  }
}

/// An honest site ends of itself only where an older state of it was restored, or another process
/// of it ran.
void ProcessTalk::note_end(const Process& process) {
  const std::string why = process.node->alive().message();
  state_.report.ended.push_back(
      fmt::format("site {} at {:.3f} s: {}", process.site, to_seconds(state_.now()), why));
  if (!state_.slot(process.site).may_end) {
    state_.begin_event(process.site, "its end");
    state_.audit.fail(fmt::format("ends of itself: {}", why));
  }
}

bool ProcessTalk::still_alive(Process& process) {
  if (process.node->alive().ok()) {
    return true;
  }
  const Rank site = process.site;
  const bool replaced = process.fenced;
  if (!replaced && state_.honest(site)) {
    note_end(process);
  }
  if (replaced) {
    state_.end_process(process, false);
  } else {
    state_.end_and_begin_again(process);  // as its operator does
  }
  return false;
}

}  // namespace sotto::sites
