#include "site_status.h"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sotto/base/error.h>
#include <sotto/base/json_text.h>
#include <sotto/base/start_threads.h>
#include <sotto/observe/monitor.h>

#include "site_name.h"

namespace sotto::sitelab {
namespace {

using namespace std::chrono_literals;

constexpr auto kAskEvery = 200ms;
constexpr std::size_t kDeepestJson = 16;

sites::Incarnation parse_incarnation(const std::string& hex) {
  sites::Incarnation incarnation = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), incarnation, 16);
  return incarnation;
}

}  // namespace

SiteStatus parse_site_status(const std::string& text) try {
  const auto json = parse_json<nlohmann::json>(text, kDeepestJson);
  SiteStatus status;
  const std::string phase = json.at("phase");
  status.waits_for_model = phase == "starting" || phase == "joining";
  if (!json.contains("incarnation")) {
    return status;
  }
  status.state = {.round = json.at("round"),
                  .incarnation = parse_incarnation(json.at("incarnation")),
                  .has_model = json.at("has_model"),
                  .mass = json.at("mass"),
                  .minted = json.at("minted"),
                  .written_off = json.at("written_off"),
                  .raised = json.at("mass_raised"),
                  .lowered = json.at("mass_lowered"),
                  .resets = json.at("resets")};
  for (const auto& peer : json.at("peers")) {
    status.listed.push_back(site_rank(peer.at("name").get<std::string>()));
    status.reasons.push_back(peer.at("reason"));
    sites::PeerState& seen = status.peers.emplace_back();
    seen.name = peer.at("name");
    seen.up = peer.at("up");
    seen.trouble = peer.at("trouble");
    seen.incarnation = parse_incarnation(peer.at("incarnation"));
    seen.round = peer.at("round");
    seen.sent = peer.at("parcels_sent");
    seen.receipts = peer.at("parcels_received_there");
    seen.applied = peer.at("parcels_applied");
    seen.given = peer.at("mass_given");
    seen.taken = peer.at("mass_taken");
    seen.under_way = peer.at("mass_under_way");
    seen.hears_us = peer.at("hears_us");
    seen.tells_us = peer.at("tells_us");
    seen.offences = peer.at("offences");
  }
  return status;
} catch (const nlohmann::json::exception& error) {
  throw std::runtime_error(fmt::format("a site's monitor says {}", error.what()));
} catch (const Error& error) {
  throw std::runtime_error(fmt::format("a site's monitor says {}", error.what()));
}

StatusWatch::StatusWatch() : thread_(start_thread("watching a site", [this] { ask(); })) {}

StatusWatch::~StatusWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  change_.notify_all();
  thread_.join();
}

void StatusWatch::follow(int port, std::uint64_t process) {
  {
    const std::lock_guard lock(mutex_);
    port_ = port;
    process_ = process;
    latest_.reset();
  }
  change_.notify_all();
}

std::optional<SiteStatus> StatusWatch::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

void StatusWatch::ask() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (process_ != 0) {
      const int port = port_;
      const std::uint64_t process = process_;
      lock.unlock();
      std::optional<SiteStatus> answer;
      try {
        answer = parse_site_status(ask_monitor({"127.0.0.1", port}, "/status"));
        answer->process = process;
      } catch (const std::runtime_error&) {
        // It is starting, stopped or gone; whoever waits for it sees that it does not get on.
      }
      lock.lock();
      if (answer && process == process_) {
        latest_ = std::move(answer);
      }
    }
    change_.wait_for(lock, kAskEvery, [this] { return over_; });
  }
}

}  // namespace sotto::sitelab
