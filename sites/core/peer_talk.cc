#include <sotto/sites/core/peer_talk.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <sotto/sites/core/conduct/pace.h>
#include <sotto/sites/core/sums/secure_sum.h>
#include <sotto/sites/core/sums/sum_round.h>

namespace sotto::sites {

void PeerTalk::open(std::size_t peer) {
  handshake_.open(peer, self_.phase == RoundPhase::waiting && !leaving_.bequest().given());
}

void PeerTalk::down(std::size_t peer) {
  peers_[peer].hang_up();
  outbox_.drop(peer);
}

Status PeerTalk::receive(std::size_t peer, const SharedBytes& message) {
  Neighbour& from = peers_[peer];
  if (from.channel.stage == ChannelStage::down || self_.outdated || !self_.alive) {
    return {};
  }
  const auto parsed = parse(message, self_.setup.parameters.size());
  if (from.channel.stage == ChannelStage::refused) {
    // It may have a reason to refuse this site, too.
    if (parsed && std::holds_alternative<Refusal>(*parsed)) {
      handshake_.take(peer, std::get<Refusal>(*parsed));
    }
    return {};
  }
  if (!parsed) {
    return offence(peer, parsed.status().fault(), parsed.status().message());
  }
  from.channel.unheard = 0;
  const auto take_said = [&]<typename Said>(const Said& said) -> Status {
    if constexpr (std::is_same_v<Said, Hello>) {
      return take(peer, said);
    } else if constexpr (std::is_same_v<Said, Refusal>) {
      handshake_.take(peer, said);
      return {};
    } else {
      // A receipt is about this site's stream, all else about the sender's.
      constexpr bool kOurs = std::is_same_v<Said, Receipt>;
      const Incarnation due = kOurs ? self_.incarnation : from.known.incarnation;
      if (Status status = handshake_.expect(peer, said.incarnation, due); !status.ok()) {
        return status;
      }
      if constexpr (std::is_same_v<Said, Parcel>) {
        return take(peer, said, message);
      } else {
        return take(peer, said);
      }
    }
  };
  Status status = std::visit(take_said, *parsed);
  // It may wait for a round that was offered while it could not hear of it, or said nothing.
  if (from.up() && from.channel.said < self_.offered) {
    confirm(peer);
  }
  return status;
}

Status PeerTalk::take(std::size_t peer, const Hello& hello) {
  const auto verdict = handshake_.take(peer, hello);
  if (!verdict.ok()) {
    return verdict.status();
  }
  return *verdict ? meet(peer, hello, **verdict) : Status();
}

Status PeerTalk::meet(std::size_t peer, const Hello& hello, Verdict verdict) {
  Neighbour& from = peers_[peer];
  if (verdict == Verdict::newcomer) {
    mixing_.forget(peer);
    if (Status status = leaving_.begins_anew(from); !status.ok()) {
      return status;
    }
  }
  if (hello.life > from.known.life) {
    mixing_.comes_back(peer);
  }
  self_.written_off += from.meet(hello, verdict, self_.incarnation);
  from.lead.meet(pace_of(self_).behind(from), self_.setup.window);
  answer(peer, hello.wants_model);
  return {};
}

void PeerTalk::answer(std::size_t peer, bool wants_model) {
  Neighbour& to = peers_[peer];
  for (Sequence sequence = to.out.oldest(); to.told() && sequence < to.out.next(); ++sequence) {
    send_parcel(peer, sequence);
  }
  if (SecureSum* sum = mixing_.sum(); sum != nullptr && to.told()) {
    outbox_.send(peer, encode(SumKey{.incarnation = self_.incarnation, .key = sum->public_key()}));
  }
  if (wants_model && self_.trained && to.told()) {
    const std::span<const float> z = mixing_.model_for_newcomers();
    outbox_.send(peer, encode(Model{.incarnation = self_.incarnation,
                                    .round = self_.offered,
                                    .values = {z.begin(), z.end()}}));
    to.channel.joining = true;
    ++to.models;
  }
}

Status PeerTalk::take(std::size_t peer, const Model& model) {
  Neighbour& from = peers_[peer];
  if (!from.channel.asked) {
    return offence(peer, Fault::unexpected, "a model that it was not asked for");
  }
  from.channel.asked = from.channel.model_due = false;
  // The hello may be some rounds older than the model, which says in which round this site begins.
  from.known.round = std::max(from.known.round, model.round);
  if (self_.phase == RoundPhase::waiting && !self_.trained) {
    models_.add({.peer = peer, .round = model.round, .values = model.values});
  }
  return {};
}

Status PeerTalk::take(std::size_t peer, const Parcel& parcel, const SharedBytes& message) {
  Neighbour& from = peers_[peer];
  if (!from.heard()) {
    return offence(peer, Fault::unexpected, "a parcel from one that is not heard");
  }
  if (Status status = mixing_.check_payload(parcel.payload); !status.ok()) {
    return offence(peer, status.fault(), status.message());
  }
  switch (from.in.arrive(parcel, message, self_.setup.window)) {
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
                     fmt::format("more than {} parcels at once", self_.setup.window));
  }
  return {};
}

Status PeerTalk::take(std::size_t peer, const Receipt& receipt) {
  Neighbour& from = peers_[peer];
  if (receipt.applied < from.out.receipts() || receipt.applied >= from.out.next()) {
    return offence(peer, Fault::unexpected,
                   fmt::format("a receipt for parcel {} of {} … {}", receipt.applied,
                               from.out.receipts(), from.out.next() - 1));
  }
  if (receipt.round < from.known.round) {
    return offence(peer, Fault::unexpected,
                   fmt::format("round {} after {}", receipt.round, from.known.round));
  }
  if (receipt.own_steps > self_.setup.communication_interval) {
    return offence(peer, Fault::unexpected,
                   fmt::format("{} steps in a round of {}", receipt.own_steps,
                               self_.setup.communication_interval));
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
  SecureSum* sum = mixing_.sum();
  if (sum == nullptr) {
    return offence(peer, Fault::unexpected, "masks for a sum that is not made");
  }
  note_answer(peers_[peer], answer.round);
  sum->take(peer, answer);
  return {};
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
    send_parcel(addressee.peer,
                peers_[addressee.peer].out.push(
                    {.round = self_.offered, .mass = addressee.mass, .payload = addressee.payload},
                    addressee.whole));
  }
  for (std::size_t k = 0; any && k < peers_.size(); ++k) {
    if (!reached[k]) {
      peers_[k].out.fall_behind();
    }
  }
}

void PeerTalk::send_parcel(std::size_t peer, Sequence sequence) {
  const OutStream& out = peers_[peer].out;
  const OutStream::Item& item = out.items().at(sequence - out.oldest());
  outbox_.send(peer,
               encode(Parcel{.incarnation = self_.incarnation,
                             .sequence = sequence,
                             .round = item.round,
                             .payload = {}}),
               item.payload);
}

void PeerTalk::confirm(std::size_t peer) {
  Neighbour& to = peers_[peer];
  to.channel.said = self_.offered;
  to.channel.confirmed = to.in.durable();
  outbox_.send(peer, encode(Receipt{.incarnation = to.known.incarnation,
                                    .applied = to.in.durable(),
                                    .round = self_.offered,
                                    .own_steps = self_.planned,
                                    .wants_whole = mixing_.wants_whole(peer)}));
}

void PeerTalk::ask(Unmask question, std::span<const std::size_t> members) {
  question.incarnation = self_.incarnation;
  for (const std::size_t k : members) {
    if (peers_[k].up()) {
      peers_[k].channel.questioned = question.round;
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
