#include <sotto/sites/core/peer_talk.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <sotto/sites/core/conduct/pace.h>
#include <sotto/sites/core/sums/secure_sum.h>

namespace sotto::sites {

void PeerTalk::open(std::size_t peer) {
  Neighbour& from = peers_[peer];
  check(!from.connected(), "a channel opens once");
  if (!self_.alive) {
    return;
  }
  const bool wants = self_.phase == SitePhase::waiting && !leaving_.bequest().given();
  outbox_.send(peer, encode(from.greet({.agreement = setup_.agreement,
                                        .incarnation = self_.incarnation,
                                        .life = setup_.life,
                                        .has_model = self_.trained,
                                        .wants_model = wants,
                                        .observer = setup_.observer,
                                        .round = self_.offered,
                                        .degree = static_cast<std::uint32_t>(peers_.size())})));
}

void PeerTalk::close(std::size_t peer) {
  outbox_.drop(peer);
  if (peers_[peer].connected()) {
    outbox_.hang_up(peer);
    peers_[peer].channel.stage = ChannelStage::refused;
  }
}

Status PeerTalk::receive(std::size_t peer, const SharedBytes& message) {
  Neighbour& from = peers_[peer];
  if (from.channel.stage == ChannelStage::down || self_.outdated || !self_.alive) {
    return {};
  }
  const auto parsed = parse(message, setup_.parameters.size());
  if (from.channel.stage == ChannelStage::refused) {
    // It may have a reason to refuse this site, too.
    return parsed && std::holds_alternative<Refusal>(*parsed)
               ? take(peer, std::get<Refusal>(*parsed))
               : Status();
  }
  if (!parsed) {
    return offence(peer, parsed.status().fault(), parsed.status().message());
  }
  from.channel.unheard = 0;
  Status status = std::visit(
      [&]<typename Said>(const Said& said) {
        if constexpr (std::is_same_v<Said, Parcel>) {
          return take(peer, said, message);
        } else {
          return take(peer, said);
        }
      },
      *parsed);
  // It may wait for a round that was offered while it could not hear of it, or said nothing.
  if (from.up() && from.channel.said < self_.offered) {
    confirm(peer);
  }
  return status;
}

Status PeerTalk::take(std::size_t peer, const Hello& hello) {
  Neighbour& from = peers_[peer];
  if (from.channel.stage != ChannelStage::greeting) {
    return offence(peer, Fault::unexpected, "a second hello");
  }
  if (hello.agreement != setup_.agreement) {
    refuse(peer, RefusalReason::other_settings, setup_.settings);
    from.trouble = "its settings are not those of this site";
    return {};
  }
  const Verdict verdict =
      judge(hello, from.known, {.incarnation = self_.incarnation, .past = &self_.past}, from.out,
            from.in);
  switch (verdict) {
    case Verdict::agreed:
    case Verdict::newcomer:
      return meet(peer, hello, verdict);
    case Verdict::older_process:
      from.known.note_older({hello.incarnation, hello.life});
      refuse(peer, RefusalReason::already_running,
             fmt::format("a newer process than number {} was seen", hello.life));
      return {};
    case Verdict::stale:
      refuse(peer, RefusalReason::stale, "its state is older than one that was seen");
      return {};
    case Verdict::self_stale:
      accused(peer, "its hello knows more of this site than its state does");
      return {};
    case Verdict::undecided:
      from.trouble = "one of the two sites has an old state";
      from.channel.stage = ChannelStage::refused;
      return {};
  }
  return {};
}

Status PeerTalk::meet(std::size_t peer, const Hello& hello, Verdict verdict) {
  Neighbour& from = peers_[peer];
  if (verdict == Verdict::newcomer) {
    mixing_.model->forget(peer);
    if (Status status = leaving_.begins_anew(from); !status.ok()) {
      return status;
    }
  }
  if (mixing_.mass != nullptr && hello.life > from.known.life) {
    mixing_.mass->comes_back(peer);
  }
  self_.written_off += from.meet(hello, verdict, self_.incarnation);
  from.lead.meet(pace_of(self_, setup_).behind(from), setup_.window);
  answer(peer, hello.wants_model);
  return {};
}

void PeerTalk::answer(std::size_t peer, bool wants_model) {
  Neighbour& to = peers_[peer];
  Sequence sequence = to.out.oldest();
  for (const OutStream::Item& item : to.out.items()) {
    if (to.told()) {
      outbox_.send(peer,
                   encode(Parcel{.incarnation = self_.incarnation,
                                 .sequence = sequence++,
                                 .round = item.round,
                                 .payload = {}}),
                   item.payload);
    }
  }
  if (SecureSum* sum = mixing_.sum(); sum != nullptr && to.told()) {
    outbox_.send(peer, encode(SumKey{.incarnation = self_.incarnation, .key = sum->public_key()}));
  }
  if (wants_model && self_.trained && to.told()) {
    const std::span<const float> z =
        mixing_.mean == nullptr ? setup_.parameters : mixing_.mean->model_for_newcomers();
    outbox_.send(peer, encode(Model{.incarnation = self_.incarnation,
                                    .round = self_.offered,
                                    .values = {z.begin(), z.end()}}));
    to.channel.joining = true;
    ++to.models;
  }
}

Status PeerTalk::expect(std::size_t peer, Incarnation from, Incarnation due) {
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

Status PeerTalk::take(std::size_t peer, const Refusal& refusal) {
  Neighbour& from = peers_[peer];
  from.refused = refusal.reason;
  from.trouble = "it refuses this site: " + refusal.text;
  if (refusal.reason == RefusalReason::other_settings) {
    from.trouble = "its settings are not those of this site";
    from.settings = refusal.text;
    if (from.channel.stage !=
        ChannelStage::refused) {  // it has not seen ours, and may have taken back its hello
      outbox_.drop(peer);
      outbox_.send(peer, encode(Refusal{.reason = refusal.reason, .text = setup_.settings}));
    }
  }
  from.channel.stage = ChannelStage::refused;
  if (refusal.reason == RefusalReason::stale || refusal.reason == RefusalReason::already_running) {
    accused(peer, refusal.text);
  }
  return {};
}

Status PeerTalk::take(std::size_t peer, const Model& model) {
  Neighbour& from = peers_[peer];
  if (Status status = expect(peer, model.incarnation, from.known.incarnation); !status.ok()) {
    return status;
  }
  if (!from.channel.asked) {
    return offence(peer, Fault::unexpected, "a model that it was not asked for");
  }
  from.channel.asked = from.channel.model_due = false;
  // The hello may be some rounds older than the model, which says in which round this site begins.
  from.known.round = std::max(from.known.round, model.round);
  if (self_.phase == SitePhase::waiting && !self_.trained) {
    models_.add({.peer = peer, .round = model.round, .values = model.values});
  }
  return {};
}

Status PeerTalk::take(std::size_t peer, const Parcel& parcel, const SharedBytes& message) {
  Neighbour& from = peers_[peer];
  if (Status status = expect(peer, parcel.incarnation, from.known.incarnation); !status.ok()) {
    return status;
  }
  if (!from.heard()) {
    return offence(peer, Fault::unexpected, "a parcel from one that is not heard");
  }
  if (Status status = mixing_.model->check_payload(parcel.payload); !status.ok()) {
    return offence(peer, status.fault(), status.message());
  }
  switch (from.in.arrive(parcel, message, setup_.window)) {
    case InStream::Arrival::kept:
      from.known.round = std::max(from.known.round, parcel.round);
      from.channel.joining = false;
      if (SecureSum* sum = mixing_.sum(); sum != nullptr) {
        tell(sum->arrived(peer, parcel.payload));
      }
      return {};
    case InStream::Arrival::repeated:
      return {};
    case InStream::Arrival::gap:
      return offence(peer, Fault::unexpected,
                     fmt::format("parcel {} after {}", parcel.sequence, from.in.received()));
    case InStream::Arrival::old_round:
      return offence(peer, Fault::unexpected,
                     fmt::format("a parcel of round {} after a later one", parcel.round));
    case InStream::Arrival::too_many:
      return offence(peer, Fault::unexpected,
                     fmt::format("more than {} parcels at once", setup_.window));
  }
  return {};
}

Status PeerTalk::take(std::size_t peer, const Receipt& receipt) {
  Neighbour& from = peers_[peer];
  if (Status status = expect(peer, receipt.incarnation, self_.incarnation); !status.ok()) {
    return status;
  }
  if (receipt.applied < from.out.receipts() || receipt.applied >= from.out.next()) {
    return offence(peer, Fault::unexpected,
                   fmt::format("a receipt for parcel {} of {} … {}", receipt.applied,
                               from.out.receipts(), from.out.next() - 1));
  }
  if (receipt.round < from.known.round) {
    return offence(peer, Fault::unexpected,
                   fmt::format("round {} after {}", receipt.round, from.known.round));
  }
  if (receipt.own_steps > setup_.communication_interval) {
    return offence(
        peer, Fault::unexpected,
        fmt::format("{} steps in a round of {}", receipt.own_steps, setup_.communication_interval));
  }
  from.channel.own_steps = receipt.own_steps;
  from.confirmed(receipt.applied);
  from.in.announce_no_more();
  if (receipt.wants_whole) {
    from.wish_whole(receipt.applied, self_.offered);
  }
  from.known.round = receipt.round;
  from.channel.joining = false;
  return {};
}

Status PeerTalk::take(std::size_t peer, const SumKey& key) {
  if (Status status = expect(peer, key.incarnation, peers_[peer].known.incarnation); !status.ok()) {
    return status;
  }
  SecureSum* sum = mixing_.sum();
  if (sum == nullptr || std::exchange(peers_[peer].channel.keyed, true)) {
    return offence(peer, Fault::unexpected, "a key for sums that is not wanted");
  }
  if (!sum->take_key(peer, key.key)) {
    return offence(peer, Fault::unexpected, "a key for sums that everybody could have made");
  }
  return {};
}

Status PeerTalk::take(std::size_t peer, const Unmask& question) {
  if (Status status = expect(peer, question.incarnation, peers_[peer].known.incarnation);
      !status.ok()) {
    return status;
  }
  SecureSum* sum = mixing_.sum();
  if (sum == nullptr || !peers_[peer].told()) {
    return offence(peer, Fault::unexpected, "a question about a sum that is not made");
  }
  auto revealed = sum->answer(peer, question);
  if (!revealed) {
    return offence(peer, revealed.status().fault(), revealed.status().message());
  }
  if (*revealed) {
    tell({{peer, {.round = question.round, .revealed = std::move(**revealed)}}});
  }
  return {};
}

Status PeerTalk::take(std::size_t peer, const Masks& answer) {
  if (Status status = expect(peer, answer.incarnation, peers_[peer].known.incarnation);
      !status.ok()) {
    return status;
  }
  SecureSum* sum = mixing_.sum();
  if (sum == nullptr) {
    return offence(peer, Fault::unexpected, "masks for a sum that is not made");
  }
  sum_round_.answered(peers_[peer], answer.round);
  sum->take(peer, answer);
  return {};
}

Status PeerTalk::offence(std::size_t peer, Fault fault, std::string_view what) {
  Neighbour& from = peers_[peer];
  ++from.offences;
  refuse(peer, RefusalReason::broke_rule, what);
  if (from.connected()) {
    outbox_.hang_up(peer);
  }
  return self_.here({fault, fmt::format("{} sent {}", from.entry.name, what)});
}

void PeerTalk::refuse(std::size_t peer, RefusalReason reason, std::string_view text) {
  Neighbour& from = peers_[peer];
  from.refused = reason;
  from.trouble = text;
  if (from.connected()) {  // what it sent may have outlived its channel
    outbox_.drop(peer);
    outbox_.send(peer, encode(Refusal{.reason = reason, .text = std::string(text)}));
    from.channel.stage = ChannelStage::refused;
  }
}

void PeerTalk::accused(std::size_t peer, std::string_view how) {
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

void PeerTalk::fence() {
  // Peers that are away count, too: a single one must not end a site while the others are down, or
  // have not said anything yet. One that is gone for good should be taken off the list.
  const auto claims = std::ranges::count_if(peers_, &Neighbour::claims_newer);
  // A site that has yet to begin has met none or a few of them.
  const bool waiting = self_.phase == SitePhase::waiting;
  const auto may_know = std::ranges::count_if(peers_, [waiting](const Neighbour& peer) {
    return waiting || peer.claims_newer || peer.known.incarnation != 0;
  });
  if (2 * claims > may_know) {
    outbox_.clear();
    self_.alive = {
        Fault::unexpected,
        fmt::format("site {}: a newer process with its key runs; this one must stop", setup_.name)};
  }
}

// What a round sends.

void PeerTalk::post(std::span<const Addressee> to) {
  std::vector<bool> reached(peers_.size());
  bool any = false;
  for (const Addressee& addressee : to) {
    if (addressee.payload == nullptr) {
      continue;
    }
    any = reached[addressee.peer] = true;
    peers_[addressee.peer].habits.note_given(addressee.mass);
    const Sequence sequence = peers_[addressee.peer].out.push(
        {.round = self_.offered, .mass = addressee.mass, .payload = addressee.payload},
        addressee.whole);
    outbox_.send(addressee.peer,
                 encode(Parcel{.incarnation = self_.incarnation,
                               .sequence = sequence,
                               .round = self_.offered,
                               .payload = {}}),
                 addressee.payload);
  }
  for (std::size_t k = 0; any && k < peers_.size(); ++k) {
    if (!reached[k]) {
      peers_[k].out.fall_behind();
    }
  }
}

void PeerTalk::confirm(std::size_t peer) {
  Neighbour& to = peers_[peer];
  to.channel.said = self_.offered;
  to.channel.confirmed = to.in.durable();
  outbox_.send(peer, encode(Receipt{.incarnation = to.known.incarnation,
                                    .applied = to.in.durable(),
                                    .round = self_.offered,
                                    .own_steps = self_.planned,
                                    .wants_whole = mixing_.copies != nullptr &&
                                                   mixing_.copies->wants_whole(peer)}));
}

void PeerTalk::ask(Unmask question, std::span<const std::size_t> members) {
  question.incarnation = self_.incarnation;
  for (const std::size_t k : members) {
    if (peers_[k].up()) {
      peers_[k].channel.questioned = true;
      outbox_.send(k, encode(question));
    }
  }
}

void PeerTalk::tell(std::vector<std::pair<std::size_t, Masks>> answers) {
  for (auto& [peer, answer] : answers) {
    if (peers_[peer].up()) {
      answer.incarnation = self_.incarnation;
      outbox_.send(peer, encode(answer));
    }
  }
}

}  // namespace sotto::sites
