// What a site's operator hears of a peer that breaks rules, whoever notices: the site's grammar,
// the decoder of its payloads, or the channel.
#include <sotto/sites/process/report/peer_monitor.h>
#include <sotto/sites/process/site_links.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/compress/registry.h>
#include <sotto/optim/step_rule.h>

namespace sotto::test::site_links_test {

namespace {

/// Channels that say what a test wants.
class ScriptedChannels final : public Channels {
 public:
  std::string address() const override { return ""; }
  Status send(Rank /*peer*/, std::span<const std::byte> /*message*/) override { return {}; }
  Result<ChannelEvent> poll(Deadline /*deadline*/) override {
    if (events.empty()) {
      return Status(Fault::deadline, "nothing");
    }
    ChannelEvent event = std::move(events.front());
    events.pop_front();
    return event;
  }
  void close(Rank /*peer*/, std::chrono::milliseconds pause) override { pauses.push_back(pause); }
  std::vector<ChannelTraffic> traffic() const override { return {channel}; }
  RefusedKeys refused_keys() const override { return refused; }
  Strangers strangers() const override { return {}; }

  std::deque<ChannelEvent> events;
  ChannelTraffic channel{.peer = 1};
  RefusedKeys refused;
  std::vector<std::chrono::milliseconds> pauses;
};

/// Site a, number 0, and b, number 1.
std::vector<TrustedPeer> two_lines() {
  std::vector<TrustedPeer> lines(2);
  for (std::size_t k = 0; k < lines.size(); ++k) {
    lines[k].rank = static_cast<Rank>(k);
    lines[k].name = k == 0 ? "a" : "b";
    lines[k].key = make_key_pair().public_key;
  }
  return lines;
}

struct Scene {
  Scene() {
    sites::SiteSetup setup;
    setup.name = "a";
    setup.peers = {{.name = "b"}};
    setup.parameters = parameters;
    setup.layout = one_tensor(parameters.size());
    setup.step_rule = make_step_rule({});
    setup.compressor = make_compressor("none");
    setup.incarnation = 1;
    site = std::make_unique<sites::Site>(std::move(setup));
    const SiteTeller teller(*site, [this](const SiteEvent& event) { events.push_back(event); });
    links =
        std::make_unique<SiteLinks>(*site, channels, list, 0, sites::MixingKind::push_sum, teller);
    monitor = std::make_unique<PeerMonitor>(*site, channels, *links, false, "", teller);
    REQUIRE(site->try_begin(true));
  }
  void happens(ChannelEvent::Kind kind, std::string reason = {}, std::size_t bytes = 0) {
    channels.events.push_back({.kind = kind,
                               .peer = 1,
                               .message = std::vector<std::byte>(bytes, std::byte{0xEE}),
                               .reason = std::move(reason)});
    REQUIRE(links->pump(Deadline::after({})).ok());
    monitor->look();
  }
  /// The peer sends this.
  void says(const sites::Message& message) {
    channels.events.push_back(
        {.kind = ChannelEvent::Kind::message,
         .peer = 1,
         .message = std::visit([](const auto& one) { return encode(one); }, message)});
    REQUIRE(links->pump(Deadline::after({})).ok());
  }
  std::vector<std::string> offences() const {
    std::vector<std::string> texts;
    for (const SiteEvent& event : events) {
      if (event.kind == SiteEvent::Kind::peer_offence) {
        CHECK(event.peer == "b");
        texts.push_back(event.text);
      }
    }
    return texts;
  }

  std::vector<float> parameters = std::vector<float>(8);
  AllowList list{two_lines()};
  ScriptedChannels channels;
  std::vector<SiteEvent> events;
  std::unique_ptr<sites::Site> site;
  std::unique_ptr<SiteLinks> links;
  std::unique_ptr<PeerMonitor> monitor;
};

}  // namespace

TEST_CASE("an offence is told once and costs a pause that doubles, whoever notices it") {
  Scene scene;
  for (int round = 1; round <= 3; ++round) {
    CAPTURE(round);
    // A message that breaks the grammar.
    scene.happens(ChannelEvent::Kind::up);
    scene.happens(ChannelEvent::Kind::message, "", 20);
    REQUIRE(scene.offences().size() == static_cast<std::size_t>(2 * round - 1));
    CHECK(scene.offences().back().find("it broke a rule: ") == 0);
    scene.happens(ChannelEvent::Kind::down, "closed");
    // One that breaks the rules of the wire.
    scene.happens(ChannelEvent::Kind::up);
    ++scene.channels.channel.offences;
    scene.channels.channel.trouble = ChannelTrouble::offence;
    scene.channels.channel.reason = "it broke a rule: a chunk beyond the end";
    scene.happens(ChannelEvent::Kind::down, scene.channels.channel.reason);
    REQUIRE(scene.offences().size() == static_cast<std::size_t>(2 * round));
    CHECK(scene.offences().back() == scene.channels.channel.reason);
  }
  REQUIRE(scene.channels.pauses.size() == 6);
  for (std::size_t k = 0; k < scene.channels.pauses.size(); ++k) {
    CHECK(scene.channels.pauses[k] == SiteLinks::kFirstPause * (1 << k));
  }
  CHECK(scene.monitor->reports().at(0).offences == 6);
}

TEST_CASE("a payload that no decoder takes is its sender's offence, noticed as the round ends") {
  Scene scene;
  scene.happens(ChannelEvent::Kind::up);
  scene.says(sites::Hello{.incarnation = 5, .life = 1, .hears = true, .tells = true});
  REQUIRE(scene.site->offer().ok());
  // A share of a half, and three bytes in place of eight values.
  ByteBuffer payload;
  payload.write(0.5);
  payload.write(0.5);
  payload.append(std::vector<std::byte>(3));
  scene.says(
      sites::Parcel{.incarnation = 5, .sequence = 1, .round = 1, .payload = payload.bytes()});
  CHECK(scene.offences().empty());
  REQUIRE(scene.site->collect().ok());
  scene.links->send();
  scene.monitor->look();
  REQUIRE(scene.offences().size() == 1);
  CHECK(scene.offences().back().find("it broke a rule: ") == 0);
  REQUIRE(scene.channels.pauses.size() == 1);
  CHECK(scene.channels.pauses.front() == SiteLinks::kFirstPause);
}

TEST_CASE("a peer that connects without end has to wait, and is told of once") {
  Scene scene;
  constexpr int kTimes = 40;
  for (int k = 0; k < kTimes; ++k) {
    scene.happens(ChannelEvent::Kind::up);
    scene.happens(ChannelEvent::Kind::down, "its connection ended");
  }
  const auto told = [&](SiteEvent::Kind kind) {
    return std::ranges::count_if(scene.events, [&](const SiteEvent& event) {
      return event.kind == kind && event.peer == "b";
    });
  };
  CHECK(told(SiteEvent::Kind::peer_restless) == 1);
  CHECK(told(SiteEvent::Kind::peer_down) <= static_cast<int>(LinkChurn::kAMinute) + 1);
  REQUIRE(scene.channels.pauses.size() >= kTimes - 10);
  CHECK(scene.channels.pauses.front() >= SiteLinks::kFirstPause);
  CHECK(scene.channels.pauses.back() >= std::chrono::minutes(1));
  CHECK(std::ranges::is_sorted(scene.channels.pauses));
}

TEST_CASE("a peer may connect eight times a minute, or once where it is sent a model") {
  using namespace std::chrono_literals;
  const LinkChurn::Time begin{};
  LinkChurn churn;
  for (int k = 0; k < 1000; ++k) {
    churn.meet(begin + 7500ms * k);
    CHECK_FALSE(churn.restless(begin + 7500ms * k));
  }
  LinkChurn often;
  for (int k = 0; k < 9; ++k) {
    often.meet(begin);
  }
  CHECK(often.restless(begin));
  CHECK(often.lasts(begin) == 7500ms);
  CHECK_FALSE(often.restless(begin + 8s));
  LinkChurn models;
  for (int k = 0; k < 100; ++k) {
    models.meet(begin + 1min * k);
    models.sent_model(begin + 1min * k);
    CHECK_FALSE(models.restless(begin + 1min * k));
  }
  models.meet(begin + 100min);
  models.sent_model(begin + 100min);
  models.meet(begin + 100min);
  models.sent_model(begin + 100min);
  CHECK(models.lasts(begin + 100min) == 60s);
}

TEST_CASE("what was told of a peer is not told again when it returns to the list") {
  Scene scene;
  scene.happens(ChannelEvent::Kind::up);
  scene.happens(ChannelEvent::Kind::message, "", 20);
  REQUIRE(scene.offences().size() == 1);
  const std::vector<TrustedPeer> both = scene.list.peers();
  scene.list.update_allow_list({both[0]});
  scene.happens(ChannelEvent::Kind::down, "revoked");
  scene.list.update_allow_list(both);
  scene.happens(ChannelEvent::Kind::up);
  CHECK(scene.offences().size() == 1);
  CHECK(scene.monitor->reports().at(0).offences == 1);
}

TEST_CASE("a refused key is told once, with the owner that it has or had") {
  ScriptedChannels channels;
  std::vector<SiteEvent> events;
  const Scene scene;
  AdmissionMonitor monitor(
      channels, SiteTeller(*scene.site, [&](const SiteEvent& event) { events.push_back(event); }));
  auto lines = two_lines();
  const std::string key = lines[1].key.text();
  channels.refused = {.times = 1, .latest = {{.key = key, .address = "10.0.0.9:7"}}};
  monitor.follow(lines);
  monitor.look();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == SiteEvent::Kind::key_refused);
  CHECK(events[0].peer == "b");
  CHECK(events[0].round == scene.site->round());
  CHECK(events[0].text.ends_with("has a line in the list of peers that allows it nothing"));
  monitor.look();
  CHECK(events.size() == 1);

  lines.pop_back();
  monitor.follow(lines);
  monitor.look();
  CHECK(events.size() == 1);  // a pause has begun
  CHECK_FALSE(monitor.refused_keys().at(0).listed);
  CHECK(monitor.refused_keys().at(0).name == "b");
}

}  // namespace sotto::test::site_links_test
