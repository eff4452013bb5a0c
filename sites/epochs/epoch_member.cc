#include <sotto/sites/epochs/epoch_member.h>

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>
#include <sotto/kernels/ops.h>

namespace sotto::sites {
namespace {

void check_name(std::string_view field, const std::string& name) {
  if (name.empty() || name.size() > kMostEpochName || one_line(name) != name) {
    refuse(field, name, fmt::format("1 … {} printable bytes", kMostEpochName));
  }
}

EpochSetup approved(EpochSetup setup) {
  check_name("name", setup.name);
  for (const std::string& founder : setup.founders) {
    check_name("founders", founder);
  }
  if (setup.incarnation == 0 || setup.founders.size() > kMostEpochMembers) {
    refuse(
        "incarnation", fmt::format("{}", setup.incarnation),
        fmt::format("a number that is drawn, not 0, and at most {} founders", kMostEpochMembers));
  }
  if (setup.least < 1 || setup.least > setup.most || setup.most > kMostEpochMembers) {
    refuse("nodes", fmt::format("{}:{}", setup.least, setup.most),
           fmt::format("MIN:MAX with 1 ≤ MIN ≤ MAX ≤ {}", kMostEpochMembers));
  }
  return setup;
}

/// A copy of the state has at most so many floats for each parameter, and so many bytes besides: no
/// step rule keeps more.
constexpr std::size_t kMostStateFloats = 16;
constexpr std::size_t kMostRest = std::size_t{1} << 20U;

}  // namespace

EpochMember::EpochMember(EpochSetup setup, EpochTime now)
    : setup_(approved(std::move(setup))),
      rules_(setup_.rules),
      model_(setup_.parameters, setup_.layout, std::move(setup_.step_rule)),
      reducer_(setup_.parameters.size(), std::move(setup_.compressor), setup_.seed),
      self_{setup_.name, setup_.incarnation, 0},
      log_(setup_.join_memory),
      now_(now),
      said_(now),
      entered_at_(now),
      fetch_(kMostStateFloats * sizeof(float) * setup_.parameters.size() + kMostRest) {
  if (std::ranges::find(setup_.founders, self_.name) != setup_.founders.end()) {
    standing_ = EpochStanding::founding;
  }
}

void EpochMember::set_peers(const std::vector<EpochPeer>& peers) {
  peers_ = {peers.begin(), peers.end()};
  std::erase_if(stays_, [&](const auto& item) {
    const auto& [name, incarnation] = item.first;
    return !peers_.contains({name, incarnation, false}) &&
           !peers_.contains({name, incarnation, true});
  });
}

bool EpochMember::suspected(const EpochNode& node) const {
  if (node == self_) {
    return false;
  }
  const auto stay = stays_.find({node.name, node.incarnation});
  const bool anew = stay != stays_.end() && stay->second > node.stay;
  return anew || !peers_.contains({node.name, node.incarnation, false});
}

std::optional<std::pair<std::string, Incarnation>> EpochMember::address(const EpochNode& to) const {
  if (to.incarnation != 0) {
    return std::pair(to.name, to.incarnation);
  }
  const auto found = std::ranges::find_if(
      peers_, [&](const EpochPeer& peer) { return peer.name == to.name && !peer.suspected; });
  return found == peers_.end() ? std::nullopt
                               : std::optional(std::pair(found->name, found->incarnation));
}

void EpochMember::send(const EpochNode& to, Epoch epoch, EpochBody body) {
  const auto where = address(to);
  if (where && where->first != self_.name) {
    outbox_.push_back({where->first, where->second,
                       encode(EpochMessage{{history_, epoch, self_.stay}, std::move(body)})});
  }
}

void EpochMember::send(const EpochNode& to, EpochBody body) { send(to, epoch_, std::move(body)); }

void EpochMember::send_all(const EpochBody& body) {
  for (const EpochNode& voter : voters()) {
    send(voter, body);
  }
}

Status EpochMember::receive(const std::string& name, Incarnation incarnation,
                            std::span<const std::byte> message, EpochTime now) {
  const auto parsed = parse_epoch(message);
  if (!parsed) {
    return parsed.status();
  }
  now_ = now;
  const EpochHeader& header = parsed->header;
  const bool stranger =
      header.history != History{} && history_ != History{} && header.history != history_;
  if (stranger || standing_ == EpochStanding::failed || standing_ == EpochStanding::left) {
    return {};
  }
  const EpochNode from{name, incarnation, header.stay};
  auto& stay = stays_[{name, incarnation}];
  if (header.stay < stay) {
    return {};  // what an earlier stay has said is over
  }
  stay = header.stay;
  std::visit([&](const auto& body) { take(from, header, body, now); }, parsed->body);
  advance(now);
  return {};
}

template <typename Body>
void EpochMember::take(const EpochNode& from, const EpochHeader& header, const Body& body,
                       EpochTime now) {
  if constexpr (std::is_same_v<Body, WantMessage>) {
    on_want(from, header, body);
  } else if constexpr (std::is_same_v<Body, DecideMessage>) {
    on_decide(from, header.epoch, body.value, now);
  } else if constexpr (std::is_same_v<Body, AskMessage>) {
    on_ask(from, header.epoch);
  } else if constexpr (std::is_same_v<Body, EnteredMessage>) {
    on_entered(from, header.epoch);
  } else if constexpr (std::is_same_v<Body, JoinMessage>) {
    on_join(from, body, now);
  } else if constexpr (std::is_same_v<Body, DonorMessage>) {
    if (header.history != History{} && standing_ <= EpochStanding::joining) {
      history_ = header.history;
      fetch_.hear(from, body, now);
    }
  } else if constexpr (std::is_same_v<Body, FetchMessage>) {
    on_fetch(from, body, now);
  } else if constexpr (std::is_same_v<Body, PieceMessage>) {
    if (standing_ == EpochStanding::joining && !computing_ && fetch_.donors().contains(from) &&
        fetch_.take(body, now)) {
      restore();
    }
  } else {
    if constexpr (std::is_same_v<Body, PartMessage>) {
      if (body.standing == PartMessage::Standing::held) {
        on_held(from, body);
        return;
      }
    }
    if (current(from, header.epoch)) {
      on(from, body, now);
    }
  }
}

bool EpochMember::current(const EpochNode& from, Epoch epoch) {
  const bool votes = standing_ == EpochStanding::founding && epoch_ == 0;
  if (epoch == epoch_ && (votes || standing_ == EpochStanding::member)) {
    const std::vector<EpochNode> all = voters();
    return std::ranges::find(all, voter_of(from)) != all.end();
  }
  if (epoch > epoch_ && standing_ == EpochStanding::member) {
    send(from, epoch_, AskMessage{});
  } else if (epoch <= epoch_ || decisions_.contains(epoch)) {
    on_ask(from, epoch);
  }
  return false;
}

Status EpochMember::offer(std::span<const float> gradient, EpochTime now) {
  check(computing_, "a gradient is offered where one is wanted");
  check(gradient.size() == setup_.parameters.size(), "a gradient has the model's dimension");
  if (host_ops().count_non_finite(gradient).count > 0) {
    return {Fault::non_finite,
            fmt::format("step {}: the gradient has elements that are not finite; lower the "
                        "learning rate, or look at the data",
                        step_ + 1)};
  }
  now_ = now;
  computing_ = false;
  const bool late = !parked_.empty() || standing_ != EpochStanding::member;
  apply_parked();
  if (late) {
    outcome_ = {model_.step(), true};
  } else {
    gradient_.emplace(gradient.begin(), gradient.end());
  }
  advance(now);
  return fault_;
}

void EpochMember::leave(EpochTime now) {
  if (leaving_ || standing_ == EpochStanding::failed) {
    return;  // others still need it, or it has failed
  }
  leaving_ = true;
  computing_ = false;
  apply_parked();
  if (standing_ == EpochStanding::failed) {
    return;
  }
  if (standing_ != EpochStanding::member) {
    standing_ = EpochStanding::left;
  }
  advance(now);
}

void EpochMember::tick(EpochTime now) {
  if (standing_ == EpochStanding::failed || standing_ == EpochStanding::left) {
    return;
  }
  now_ = now;
  const bool replays = standing_ == EpochStanding::joining && fetch_.done();
  const bool again = replays || now - said_ >= kAgain;
  if (standing_ == EpochStanding::member || standing_ == EpochStanding::founding) {
    watch_for_change(now);
  }
  if (standing_ == EpochStanding::member) {
    measure_pace(now);
    look_after_newcomers(now);
  }
  if (again) {
    if (now - said_ >= kAgain) {
      said_ = now;
      if (std::exchange(replayed_, step_) == step_) {
        asked_to_ = 0;  // what was asked for is lost, or comes from nobody
        asked_from_.reset();
      }
    }
    switch (standing_) {
      case EpochStanding::leaving:
        linger();
        break;
      case EpochStanding::member:
        say_again();
        break;
      default:
        seek(now);
        break;
    }
  }
  advance(now);
}

void EpochMember::fail(const Status& status) {
  fault_ = status;
  standing_ = EpochStanding::failed;
}

void EpochMember::note_founding_vote() {
  if (epoch_ == 0) {
    ByteBuffer out;
    vote_.save(out);
    votes_ = std::move(out).take();
    votes_changed_ = true;
  }
}

std::vector<std::byte> EpochMember::founding_votes() {
  votes_changed_ = false;
  return votes_;
}

Status EpochMember::load_founding_votes(std::span<const std::byte> votes) {
  ByteReader in(votes);
  votes_.assign(votes.begin(), votes.end());
  return vote_.load(in);
}

}  // namespace sotto::sites
