// What peers say, and what a site answers.
#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <sotto/sites/core/secure_sum.h>
#include <sotto/sites/core/site.h>

namespace sotto::sites {

Status Site::receive(std::size_t peer, const SharedBytes& message) {
  Neighbour& from = peers_[peer];
  if (from.channel.stage == ChannelStage::down || outdated_ || !alive_) {
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
  if (from.up() && from.channel.said < offered_) {
    confirm(peer);
  }
  return status;
}

Status Site::take(std::size_t peer, const Hello& hello) {
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
      judge(hello, from.known, {.incarnation = incarnation_, .past = &past_}, from.out, from.in);
  switch (verdict) {
    case Verdict::agreed:
    case Verdict::newcomer:
      if (verdict == Verdict::newcomer) {
        mixing_.model->forget(peer);
        if (const OutStream::Item* gift = bequest_.held_by(from); gift != nullptr) {
          const double mass = gift->mass;
          if (Status status = take_back(gift->payload); !status.ok()) {
            return status;
          }
          written_off_ -= mass;  // it is in what is written off below
        }
      }
      if (mixing_.mass != nullptr && hello.life > from.known.life) {
        mixing_.mass->comes_back(peer);
      }
      written_off_ += from.meet(hello, verdict, incarnation_);
      from.lead.meet(pace().behind(from), setup_.window);
      answer(peer, hello.wants_model);
      return {};
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

void Site::answer(std::size_t peer, bool wants_model) {
  Neighbour& to = peers_[peer];
  Sequence sequence = to.out.oldest();
  for (const OutStream::Item& item : to.out.items()) {
    if (to.told()) {
      outbox_.send(peer,
                   encode(Parcel{.incarnation = incarnation_,
                                 .sequence = sequence++,
                                 .round = item.round,
                                 .payload = {}}),
                   item.payload);
    }
  }
  if (SecureSum* sum = mixing_.sum(); sum != nullptr && to.told()) {
    outbox_.send(peer, encode(SumKey{.incarnation = incarnation_, .key = sum->public_key()}));
  }
  if (wants_model && trained_ && to.told()) {
    const std::span<const float> z =
        mixing_.mean == nullptr ? parameters() : mixing_.mean->model_for_newcomers();
    outbox_.send(
        peer, encode(Model{
                  .incarnation = incarnation_, .round = offered_, .values = {z.begin(), z.end()}}));
    to.channel.joining = true;
    ++to.models;
  }
}

Status Site::expect(std::size_t peer, Incarnation from, Incarnation due) {
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

Status Site::take(std::size_t peer, const Refusal& refusal) {
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

Status Site::take(std::size_t peer, const Model& model) {
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
  if (phase_ == Phase::waiting && !trained_) {
    models_.add({.peer = peer, .round = model.round, .values = model.values});
  }
  return {};
}

Status Site::take(std::size_t peer, const Parcel& parcel, const SharedBytes& message) {
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

Status Site::take(std::size_t peer, const Receipt& receipt) {
  Neighbour& from = peers_[peer];
  if (Status status = expect(peer, receipt.incarnation, incarnation_); !status.ok()) {
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
    from.wish_whole(receipt.applied, offered_);
  }
  from.known.round = receipt.round;
  from.channel.joining = false;
  return {};
}

Status Site::offence(std::size_t peer, Fault fault, std::string_view what) {
  Neighbour& from = peers_[peer];
  ++from.offences;
  refuse(peer, RefusalReason::broke_rule, what);
  if (from.connected()) {
    outbox_.hang_up(peer);
  }
  return here({fault, fmt::format("{} sent {}", from.entry.name, what)});
}

void Site::refuse(std::size_t peer, RefusalReason reason, std::string_view text) {
  Neighbour& from = peers_[peer];
  from.refused = reason;
  from.trouble = text;
  if (from.connected()) {  // what it sent may have outlived its channel
    outbox_.drop(peer);
    outbox_.send(peer, encode(Refusal{.reason = reason, .text = std::string(text)}));
    from.channel.stage = ChannelStage::refused;
  }
}

void Site::accused(std::size_t peer, std::string_view how) {
  Neighbour& from = peers_[peer];
  from.refused = from.refused.value_or(RefusalReason::stale);
  // A process only moves forward: what it was loaded from can be old, what it has become cannot. If
  // a peer with which it agreed knows more, another process was there.
  if (loaded_ && !from.agreed) {
    from.trouble = fmt::format("the state that was loaded is too old: {}", how);
    outdated_ = true;
    return;
  }
  from.trouble = fmt::format("another process of this site was seen: {}", how);
  from.claims_newer = true;
  close(peer);
  fence();
}

void Site::fence() {
  // Peers that are away count, too: a single one must not end a site while the others are down, or
  // have not said anything yet. One that is gone for good should be taken off the list.
  const auto claims = std::ranges::count_if(peers_, &Neighbour::claims_newer);
  // A site that has yet to begin has met none or a few of them.
  const bool waiting = phase_ == Phase::waiting;
  const auto may_know = std::ranges::count_if(peers_, [waiting](const Neighbour& peer) {
    return waiting || peer.claims_newer || peer.known.incarnation != 0;
  });
  if (2 * claims > may_know) {
    outbox_.clear();
    alive_ = {
        Fault::unexpected,
        fmt::format("site {}: a newer process with its key runs; this one must stop", setup_.name)};
  }
}

}  // namespace sotto::sites
