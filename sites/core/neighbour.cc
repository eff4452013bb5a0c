#include <sotto/sites/core/neighbour.h>

#include <algorithm>
#include <bit>

namespace sotto::sites {

Hello Neighbour::greet(Hello mine) {
  channel.stage = ChannelStage::greeting;
  channel.asked = mine.wants_model && entry.hears;
  mine.wants_model = channel.asked;
  mine.hears = entry.hears;
  mine.tells = entry.tells;
  mine.yours = known.incarnation;
  mine.applied = in.durable();
  mine.oldest = out.oldest();
  mine.next = out.next();
  channel.said = mine.round;
  return mine;
}

void Neighbour::hang_up() { channel = {}; }

double Neighbour::meet(const Hello& hello, Verdict verdict, Incarnation self) {
  double written_off = 0;
  if (verdict == Verdict::newcomer) {
    written_off = out.under_way();
    begin_anew();
    if (known.incarnation != 0) {
      known.past.add({known.incarnation, known.life});
    }
    known.incarnation = hello.incarnation;
  }
  known.life = hello.life;
  known.round = hello.round;
  const bool knows_us = hello.yours == self;
  if (knows_us) {
    confirmed(hello.applied);
  }
  in.announce(knows_us ? hello.oldest : 1, knows_us ? hello.next : 1);
  channel.stage = ChannelStage::up;
  refused.reset();
  trouble.clear();
  settings.clear();
  channel.hears_us = hello.hears;
  channel.tells_us = hello.tells;
  observer = hello.observer;
  channel.degree = hello.degree;
  habits.note_meeting();
  whole_due = whole_pause = 0;
  channel.model_due = channel.asked && hello.has_model && hello.tells;
  return written_off;
}

void Neighbour::wish_whole(Sequence applied, Round round) {
  constexpr Round kLongestPause = 64;
  if (round >= whole_due && out.ask_whole(applied)) {
    whole_pause = std::clamp<Round>(2 * whole_pause, 1, kLongestPause);
    whole_due = round + whole_pause;
  }
}

void Neighbour::confirmed(Sequence applied) {
  if (applied > out.receipts()) {
    habits.note_receipt();
  }
  out.receipt(applied);
}

double Neighbour::degree(std::size_t own_degree) const {
  constexpr std::size_t kMany = 64;
  const std::size_t most = std::max(kMany, 4 * own_degree);
  return static_cast<double>(std::clamp<std::size_t>(channel.degree, 1, most));
}

void Neighbour::note_intake(std::size_t own_degree) {
  if (influence.parcels > 0) {
    habits.note_parcels(influence.excess > 0);
  }
  // An honest site holds the least mass at least, and gives each of those that it tells its share.
  constexpr double kMore = 2;  // sites that it lists by now
  const double least = 1 + std::max(degree(own_degree), static_cast<double>(own_degree));
  const bool thin = influence.lightest && up() && *influence.lightest * kMore * least < 1;
  habits.end_round(thin ? 0 : influence.parcels, thin);
}

void Neighbour::begin_anew() {
  out = {};  // what was under way is lost to the site, whether it had that or not
  in = {};
  freshness = {};
}

double Neighbour::leave() {
  hang_up();
  agreed = claims_newer = false;
  refused.reset();
  in.drop_pending();
  const double written_off = out.write_off();
  habits.note_returned(written_off);
  return written_off;
}

void Neighbour::take_blame(Round round) {
  constexpr Round kFirstBar = 32;
  constexpr std::uint64_t kMostDoublings = 20;
  if (++blamed > 1) {
    barred_until = round + (kFirstBar << std::min(blamed - 2, kMostDoublings));
  }
}

bool Neighbour::needs_receipt() const {
  constexpr Round kEach = 16;
  return in.durable() != channel.confirmed || channel.unheard <= kEach ||
         std::has_single_bit(channel.unheard);
}

PeerHabit Neighbour::habit() const {
  // While it is drained neither end sends.
  return up() && !draining ? habits.habit() : PeerHabit::none;
}

PeerState Neighbour::state() const {
  return {.name = entry.name,
          .up = up(),
          .refused = refused,
          .trouble = trouble,
          .settings = settings,
          .heard = heard(),
          .own_steps = channel.own_steps,
          .hears_us = channel.hears_us,
          .tells_us = channel.tells_us,
          .incarnation = known.incarnation,
          .life = known.life,
          .round = known.round,
          .sent = out.next() - 1,
          .receipts = out.receipts(),
          .applied = in.applied(),
          .pending = in.pending().size(),
          .given = out.given(),
          .taken = in.taken(),
          .under_way = out.under_way(),
          .drawn = habits.drawn(),
          .offences = offences,
          .models = models,
          .observer = observer,
          .moved = influence.moved,
          .cut = cut,
          .spoiled = spoiled,
          .blamed = blamed,
          .habit = habit(),
          .joining = up() && comes_to_model(),
          .waited_for = punctuality.waited_for(),
          .answers = answering.waited_for()};
}

void Neighbour::save(ByteBuffer& out_bytes) const {
  out_bytes.write(known.incarnation);
  out_bytes.write(known.life);
  out_bytes.write(known.round);
  known.past.save(out_bytes);
  out.save(out_bytes);
  in.save(out_bytes);
  for (const std::uint64_t count : {cut, spoiled, blamed, barred_until}) {
    out_bytes.write(count);
  }
}

Status Neighbour::load(ByteReader& bytes, std::size_t window, std::size_t max_payload) {
  known.incarnation = bytes.read<Incarnation>();
  known.life = bytes.read<std::uint32_t>();
  known.round = bytes.read<Round>();
  if (bytes.failed() || known.round > kMostCount) {
    return {Fault::malformed, "checkpoint has a peer that cannot be"};
  }
  if (Status status = known.past.load(bytes); !status.ok()) {
    return status;
  }
  if (Status status = out.load(bytes, window, max_payload); !status.ok()) {
    return status;
  }
  if (Status status = in.load(bytes); !status.ok()) {
    return status;
  }
  for (std::uint64_t* count : {&cut, &spoiled, &blamed, &barred_until}) {
    *count = bytes.read<std::uint64_t>();
  }
  if (bytes.failed() || barred_until > 2 * kMostCount) {
    return {Fault::malformed, "checkpoint has counts of a peer that cannot be"};
  }
  const bool met = known.incarnation != 0;
  if (!met && (known.round != 0 || out.next() != 1 || in.applied() != 0)) {
    return {Fault::malformed, "checkpoint has parcels of a peer that was never met"};
  }
  return {};
}

}  // namespace sotto::sites
