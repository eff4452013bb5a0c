// What a site's operator hears of a peer that breaks rules, whoever notices: the site's grammar,
// the decoder of its payloads, or the channel.
#include <sotto/sites/process/site_links.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/compress/registry.h>
#include <sotto/optim/step_rule.h>

using namespace sotto;

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
  RefusedKeys refused_keys() const override { return {}; }
  Strangers strangers() const override { return {}; }

  std::deque<ChannelEvent> events;
  ChannelTraffic channel{.peer = 1};
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
    links = std::make_unique<SiteLinks>(
        *site, channels, list, 0, sites::MixingKind::push_sum, false, "",
        [this](const SiteEvent& event) { events.push_back(event); });
    REQUIRE(site->try_begin(true));
  }
  void happens(ChannelEvent::Kind kind, std::string reason = {}, std::size_t bytes = 0) {
    channels.events.push_back({.kind = kind,
                               .peer = 1,
                               .message = std::vector<std::byte>(bytes, std::byte{0xEE}),
                               .reason = std::move(reason)});
    REQUIRE(links->pump(Deadline::after({})).ok());
  }
  std::vector<std::string> offences() const {
    std::vector<std::string> texts;
    for (const SiteEvent& event : events) {
      if (event.kind == "peer-offence") {
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
  CHECK(scene.links->reports().at(0).offences == 6);
}
