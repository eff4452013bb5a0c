#include "sites.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/compress/registry.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/nodes/stores/run_store.h>
#include <sotto/sites/roster/roster.h>
#include <sotto/sites/roster/seed_leases.h>

namespace sotto_fuzz {
namespace {

using sotto::ByteBuffer;
using sotto::ByteReader;
using sotto::check;
namespace sites = sotto::sites;

constexpr sites::Incarnation kOwn = 77;
constexpr sites::Incarnation kTheirs = 1000;  // and on
constexpr std::size_t kPeers = 2;
constexpr std::size_t kWindow = 3;

/// One site with two peers, driven as site.h says.
class Scene {
 public:
  explicit Scene(std::uint8_t exchange) : exchange_(exchange) { start(); }

  sites::Site& site() { return *site_; }

  void start() {
    parameters_.assign(kSiteDimension, 1.0F);
    sites::SiteSetup setup;
    setup.name = "fuzzed";
    setup.peers = {{.name = "a"}, {.name = "b"}};
    setup.parameters = parameters_;
    setup.step_rule = sotto::make_step_rule({.learning_rate = 0.1});
    const auto& kind = sites::kMixingNames[exchange_ % sites::kMixingNames.size()];
    setup.exchange = kind.kind;
    setup.compressor = sotto::make_compressor(kind.kind == sites::MixingKind::gossip ? "topk:0.5"
                                              : kind.kind == sites::MixingKind::push_sum ? "quant:8"
                                                                                         : "none",
                                              sotto::ContractKind::contraction);
    setup.sum.colluders = 0;
    setup.secret.fill(static_cast<std::uint8_t>(1 + life_));
    setup.window = kWindow;
    setup.incarnation = kOwn + life_;
    setup.life = ++life_;
    site_ = std::make_unique<sites::Site>(std::move(setup));
    up_.assign(kPeers, false);
  }

  void reload() {
    const auto state = written_;
    start();
    if (!state.empty()) {
      ByteReader in(state);
      check(site_->load(in).ok(), "what a site wrote loads");
    }
  }

  void toggle(std::size_t peer) {
    up_[peer] = !up_[peer];
    up_[peer] ? site_->peer_up(peer) : site_->peer_down(peer);
    release();
  }

  void say(std::size_t peer, std::span<const std::byte> message) {
    if (!up_[peer]) {
      return;
    }
    // A copy of just this length, so that the sanitizer sees a read beyond it.
    const std::vector<std::byte> copy(message.begin(), message.end());
    const auto before = site_->peers()[peer].offences;
    const auto status = site_->receive(peer, copy);
    check(status.ok() == (site_->peers()[peer].offences == before),
          "a fault is one offence, and an offence a fault");
    release();
    hold();
  }

  void round() {
    if (!site_->alive().ok() || !site_->try_begin(true)) {
      release();
      return;
    }
    const std::vector<float> gradient(kSiteDimension, 0.25F);
    // What a hostile peer sent may be near the end of float32: then the own step or offer faults,
    // or the model is put back.
    const bool stepped =
        site_->step(gradient).ok() || (site_->put_back().has_value() && site_->step(gradient).ok());
    if (!stepped || !site_->offer().ok()) {
      reload();
      return;
    }
    ByteBuffer out;
    site_->save(out);
    written_ = std::move(out).take();
    release();
    site_->complete();
    site_->ask_for_sum();
    release();
    site_->complete();
    if (!site_->collect().ok()) {
      reload();
    }
    release();
    hold();
  }

  void hello(std::size_t peer, std::span<const std::byte> end) {
    const auto state = site_->peers()[peer];
    sites::Hello hello;
    hello.incarnation = kTheirs + peer;
    hello.life = std::max(1U, state.life);
    hello.hears = hello.tells = true;
    hello.round = state.round;
    hello.degree = 2;
    hello.yours = site_->state().incarnation;
    hello.applied = state.receipts;
    hello.oldest = state.applied + 1;
    hello.next = state.applied + state.pending + 1;
    auto message = encode(hello);
    const std::size_t count = std::min(end.size(), message.size() - 2);
    std::ranges::copy(end.first(count), message.end() - static_cast<std::ptrdiff_t>(count));
    say(peer, message);
  }

  void parcel(std::size_t peer, std::span<const std::byte> payload) {
    const auto state = site_->peers()[peer];
    say(peer, encode(sites::Parcel{.incarnation = kTheirs + peer,
                                   .sequence = state.applied + state.pending + 1,
                                   .round = state.round + 1,
                                   .payload = payload}));
  }

  void receipt(std::size_t peer) {
    const auto state = site_->peers()[peer];
    say(peer, encode(sites::Receipt{.incarnation = site_->state().incarnation,
                                    .applied = state.sent,
                                    .round = state.round}));
  }

  /// What must hold whatever came.
  void hold() const {
    const auto state = site_->state();
    check(std::isfinite(state.mass) && state.mass >= 0 && state.mass <= 1024,
          "the mass of a site is finite, and within its cap");
    check(std::ranges::all_of(site_->parameters(), [](float x) { return std::isfinite(x); }),
          "the model of a site is finite");
    for (const auto& peer : site_->peers()) {
      check(peer.pending <= kWindow, "no more is pending than the window");
      check(peer.receipts <= peer.sent, "no receipt is for what was not sent");
    }
  }

 private:
  void release() {
    for (const auto& released : site_->released()) {
      check(released.peer < kPeers, "messages go to peers of the list");
      if (released.hang_up) {
        if (up_[released.peer]) {
          up_[released.peer] = false;
          site_->peer_down(released.peer);
        }
        continue;
      }
      check(sites::parse(released.bytes(), kSiteDimension).ok(), "a site says what parses");
      check(released.bytes().size() <= site_->max_message_bytes(), "… within its longest message");
    }
  }

  std::uint8_t exchange_;
  std::uint32_t life_ = 0;
  std::vector<float> parameters_;
  std::unique_ptr<sites::Site> site_;
  std::vector<bool> up_;
  std::vector<std::byte> written_;
};

}  // namespace

void roster_message(std::string_view /*name*/, std::span<const std::byte> input) {
  using namespace std::chrono_literals;
  sites::Roster roster(
      {.name = "own", .incarnation = kOwn, .address = "10.0.0.1:1", .seeds = {}, .most = 3}, 0ms);
  const std::string from = "10.0.0.2:2";
  const bool parses = sites::parse_roster(input).ok();
  check(roster.receive(from, input, 1ms).ok() == parses, "a roster takes what parses");
  roster.tick(100ms);
  (void)roster.receive(from, input, 200ms);
  roster.tick(20s);
  for (const sites::RosterDatagram& sent : roster.released()) {
    check(sent.message.size() <= sites::kMostRosterBytes, "a datagram is short");
    check(sites::parse_roster(sent.message).ok(), "what a roster writes parses");
  }
}

void store_entry(std::string_view /*name*/, std::span<const std::byte> input) {
  const std::vector<std::byte> bytes(input.begin(), input.end());
  const auto lease = sites::parse_lease(bytes);
  check(!lease.ok() || encode(*lease) == bytes, "a lease has one form");
  check(!lease.ok() || bytes.size() <= sites::kMostLeaseBytes, "a lease is short");
  const auto run = sotto::parse_stored_run(bytes);
  check(!run.ok() || encode(*run) == bytes, "a run has one form");
  check(!run.ok() || bytes.size() <= sotto::kMostStoredRunBytes, "the entry of a run is short");
}

void site_message(std::string_view /*name*/, std::span<const std::byte> input) {
  const std::vector<std::byte> bytes(input.begin(), input.end());
  const auto message = sites::parse(bytes, kSiteDimension);
  if (!message.ok()) {
    check(message.status().fault() == sotto::Fault::malformed ||
              message.status().fault() == sotto::Fault::non_finite,
          "a message is refused as malformed or not finite");
    return;
  }
  const auto again = std::visit([](const auto& said) { return encode(said); }, *message);
  check(again == bytes, "a message that parses is the one that encoding makes");
}

void site(std::string_view /*name*/, std::span<const std::byte> input) {
  ByteReader in(input);
  Scene scene(in.read<std::uint8_t>());
  for (int commands = 0; commands < 200 && in.remaining() >= 4; ++commands) {
    const auto command = static_cast<SiteCommand>(in.read<std::uint8_t>() % 7);
    const std::size_t peer = in.read<std::uint8_t>() % kPeers;
    const std::size_t length = in.read<std::uint16_t>();
    const auto bytes = in.take(std::min(length, in.remaining()));
    switch (command) {
      case SiteCommand::say:
        scene.say(peer, bytes);
        break;
      case SiteCommand::toggle:
        scene.toggle(peer);
        break;
      case SiteCommand::round:
        scene.round();
        break;
      case SiteCommand::hello:
        scene.hello(peer, bytes);
        break;
      case SiteCommand::parcel:
        scene.parcel(peer, bytes);
        break;
      case SiteCommand::receipt:
        scene.receipt(peer);
        break;
      case SiteCommand::reload:
        scene.reload();
        break;
    }
  }
}

void site_state(std::string_view /*name*/, std::span<const std::byte> input) {
  ByteReader in(input);
  Scene scene(in.read<std::uint8_t>());
  const auto rest = in.take(in.remaining());
  const std::vector<std::byte> bytes(rest.begin(), rest.end());
  ByteReader state(bytes);
  if (!scene.site().load(state).ok()) {
    return;
  }
  scene.hold();
  ByteBuffer out;
  scene.site().save(out);
  Scene again(std::to_integer<std::uint8_t>(input[0]));
  ByteReader saved(out.bytes());
  check(again.site().load(saved).ok(), "a state that was loaded loads again");
  scene.toggle(0);
  scene.hello(0, {});
  scene.round();
}

std::vector<std::byte> example_site_state(std::uint8_t exchange) {
  Scene scene(exchange);
  scene.toggle(0);
  scene.hello(0, {});
  for (int k = 0; k < 2; ++k) {
    scene.round();
    scene.receipt(0);
  }
  ByteBuffer out;
  out.write(exchange);
  scene.site().save(out);
  return std::move(out).take();
}

}  // namespace sotto_fuzz
