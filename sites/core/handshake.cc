#include <sotto/sites/core/handshake.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <sotto/base/check.h>

namespace sotto::sites {

void Handshake::open(std::size_t peer, bool wants_model) {
  Neighbour& from = peers_[peer];
  check(!from.connected(), "a channel opens once");
  if (!self_.alive) {
    return;
  }
  outbox_.send(peer, encode(from.greet({.agreement = self_.setup.agreement,
                                        .incarnation = self_.incarnation,
                                        .life = self_.setup.life,
                                        .has_model = self_.trained,
                                        .wants_model = wants_model,
                                        .observer = self_.setup.observer,
                                        .round = self_.offered,
                                        .degree = static_cast<std::uint32_t>(peers_.size())})));
}

void Handshake::close(std::size_t peer) {
  outbox_.drop(peer);
  if (peers_[peer].connected()) {
    outbox_.hang_up(peer);
    peers_[peer].channel.stage = ChannelStage::refused;
  }
}

Result<std::optional<Verdict>> Handshake::take(std::size_t peer, const Hello& hello) {
  Neighbour& from = peers_[peer];
  if (from.channel.stage != ChannelStage::greeting) {
    return offence(peer, Fault::unexpected, "a second hello");
  }
  if (hello.agreement != self_.setup.agreement) {
    refuse(peer, RefusalReason::other_settings, self_.setup.settings);
    from.trouble = "its settings are not those of this site";
    return std::optional<Verdict>();
  }
  const Verdict verdict = judge(
      hello, from.known, {.incarnation = self_.incarnation, .past = self_.past}, from.out, from.in);
  switch (verdict) {
    case Verdict::agreed:
    case Verdict::newcomer:
      return std::optional(verdict);
    case Verdict::older_process:
      from.known.note_older({hello.incarnation, hello.life});
      refuse(peer, RefusalReason::already_running,
             fmt::format("a newer process than number {} was seen", hello.life));
      break;
    case Verdict::stale:
      refuse(peer, RefusalReason::stale, "its state is older than one that was seen");
      break;
    case Verdict::self_stale:
      accused(peer, "its hello knows more of this site than its state does");
      break;
    case Verdict::undecided:
      from.trouble = "one of the two sites has an old state";
      from.channel.stage = ChannelStage::refused;
      break;
  }
  return std::optional<Verdict>();
}

void Handshake::take(std::size_t peer, const Refusal& refusal) {
  Neighbour& from = peers_[peer];
  from.refused = refusal.reason;
  from.trouble = "it refuses this site: " + refusal.text;
  if (refusal.reason == RefusalReason::other_settings) {
    from.trouble = "its settings are not those of this site";
    from.settings = refusal.text;
    // One that has not refused this site yet has not seen ours, and may have taken back its hello.
    if (from.channel.stage != ChannelStage::refused) {
      outbox_.drop(peer);
      outbox_.send(peer, encode(Refusal{.reason = refusal.reason, .text = self_.setup.settings}));
    }
  }
  from.channel.stage = ChannelStage::refused;
  if (refusal.reason == RefusalReason::stale || refusal.reason == RefusalReason::already_running) {
    accused(peer, refusal.text);
  }
}

Status Handshake::expect(std::size_t peer, Incarnation from, Incarnation due) {
  Neighbour& sender = peers_[peer];
  if (!sender.up()) {
    return offence(peer, Fault::unexpected, "a message before its hello");
  }
  if (from != due) {
    return offence(peer, Fault::unexpected, "a message of another incarnation");
  }
  sender.agreed = true;
  sender.claims_newer = false;
  return {};
}

Status Handshake::offence(std::size_t peer, Fault fault, std::string_view what) {
  Neighbour& from = peers_[peer];
  ++from.offences;
  refuse(peer, RefusalReason::broke_rule, what);
  if (from.connected()) {
    outbox_.hang_up(peer);
  }
  return self_.here({fault, fmt::format("{} sent {}", from.entry.name, what)});
}

void Handshake::refuse(std::size_t peer, RefusalReason reason, std::string_view text) {
  Neighbour& from = peers_[peer];
  from.refused = reason;
  from.trouble = text;
  if (from.connected()) {  // what it sent may have outlived its channel
    outbox_.drop(peer);
    outbox_.send(peer, encode(Refusal{.reason = reason, .text = std::string(text)}));
    from.channel.stage = ChannelStage::refused;
  }
}

void Handshake::accused(std::size_t peer, std::string_view how) {
  Neighbour& from = peers_[peer];
  from.refused = from.refused.value_or(RefusalReason::stale);
  // A process only moves forward: what it was loaded from can be old, what it has become cannot. If
  // a peer with which it agreed knows more, another process was there.
  if (self_.loaded && !from.agreed) {
    from.trouble = fmt::format("the state that was loaded is too old: {}", how);
    self_.outdated = true;
    return;
  }
  from.trouble = fmt::format("another process of this site was seen: {}", how);
  from.claims_newer = true;
  close(peer);
  fence();
}

void Handshake::fence() {
  // Peers that are away count, too: a single one must not end a site while the others are down, or
  // have not said anything yet. One that is gone for good should be taken off the list.
  const auto claims = std::ranges::count_if(peers_, &Neighbour::claims_newer);
  // A site that has yet to begin has met none or a few of them.
  const bool waiting = self_.phase == RoundPhase::waiting;
  const auto may_know = std::ranges::count_if(peers_, [waiting](const Neighbour& peer) {
    return waiting || peer.claims_newer || peer.known.incarnation != 0;
  });
  if (2 * claims > may_know) {
    outbox_.clear();
    self_.alive = {Fault::unexpected,
                   fmt::format("site {}: a newer process with its key runs; this one must stop",
                               self_.setup.name)};
  }
}

}  // namespace sotto::sites
