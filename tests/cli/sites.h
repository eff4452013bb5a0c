// A few sites on loopback for a test: keys, lists of peers, files and processes.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sotto/observe/monitor.h>

#include "cli/program.h"
#include "support/free_port.h"

namespace sotto::test {

/// The peers that a site's list names: all sites, in both directions, unless `trust` says
/// otherwise.
struct Trust {
  bool may_send = true;
  bool send_to = true;
};

class Sites {
 public:
  /// All listen at the same host, as it stands before the colon of an address.
  explicit Sites(std::vector<std::string> names, std::string host = "127.0.0.1")
      : names_(std::move(names)), host_(std::move(host)) {
    for (const std::string& name : names_) {
      std::filesystem::create_directories(folder(name));
      keys_[name] =
          run({"keygen", (folder(name) / "site").string(), "--json", "-"}).json().at("public_key");
      ports_[name] = free_port();
      monitors_[name] = free_port();
    }
    for (const std::string& name : names_) {
      write_peers(name, names_);
      write(name);
    }
  }
  ~Sites() { processes_.clear(); }
  Sites(const Sites&) = delete;
  Sites& operator=(const Sites&) = delete;

  std::filesystem::path folder(const std::string& name) const { return scratch_.path() / name; }
  std::string file(const std::string& name) const { return (folder(name) / "site.toml").string(); }

  /// The list of peers of one site; put in place by renaming.
  void write_peers(const std::string& name, const std::vector<std::string>& listed,
                   const std::map<std::string, Trust>& trust = {}) const {
    std::string text = "name,key,address,may_send,send_to\n";
    for (const std::string& other : listed) {
      const auto found = trust.find(other);
      const Trust allowed = found == trust.end() ? Trust() : found->second;
      text += fmt::format("{},{},{}:{},{},{}\n", other, keys_.at(other), host_, ports_.at(other),
                          allowed.may_send ? "yes" : "no", allowed.send_to ? "yes" : "no");
    }
    const auto fresh = folder(name) / "peers.new";
    std::ofstream(fresh) << text;
    std::filesystem::rename(fresh, folder(name) / "peers.csv");
  }

  /// The site's file: a share of small digits, and `training` and `network` on top.
  void write(const std::string& name, const std::string& training = "",
             const std::string& network = "") const {
    std::size_t number = 1;
    while (names_[number - 1] != name) {
      ++number;
    }
    std::ofstream(file(name)) << fmt::format(
        "sotto-site = 1\nname = \"{}\"\nkey = \"site.key\"\npeers = \"peers.csv\"\n"
        "state = \"state\"\nmonitor = \"127.0.0.1:{}\"\n"
        "[training]\ntask = \"digits,train=600,test=200\"\nmodel = \"softmax\"\npart = \"{}/{}\"\n"
        "{}\n[network]\n{}\n",
        name, monitors_.at(name), number, names_.size(), training, network);
  }
  void write_all(const std::string& training, const std::string& network = "") const {
    for (const std::string& name : names_) {
      write(name, training, network);
    }
  }

  Process& start(const std::string& name, const Arguments& more = {}) {
    Arguments words = {"node", file(name), "--json", result(name)};
    words.insert(words.end(), more.begin(), more.end());
    processes_[name] = std::make_unique<Process>(command(words));
    return *processes_[name];
  }
  void start_all() {
    for (const std::string& name : names_) {
      start(name);
    }
  }
  Process& operator[](const std::string& name) { return *processes_.at(name); }
  std::string result(const std::string& name) const {
    return (folder(name) / "result.json").string();
  }
  /// Waits for the end of a site that ends well; what it wrote.
  nlohmann::json finish(const std::string& name) {
    const Ended ended = processes_.at(name)->wait();
    CAPTURE(name);
    CAPTURE(ended.err);
    REQUIRE(ended.status == 0);
    return nlohmann::json::parse(text_of_file(result(name)));
  }

  std::string ask(const std::string& name, const std::string& path) const {
    return sotto::ask_monitor({"127.0.0.1", monitors_.at(name)}, path);
  }
  int port(const std::string& name) const { return ports_.at(name); }
  int monitor_port(const std::string& name) const { return monitors_.at(name); }
  /// Asks until the site's status is as wanted; the test's time limit ends what never is.
  nlohmann::json await(const std::string& name,
                       const std::function<bool(const nlohmann::json&)>& wanted) const {
    while (true) {
      try {
        auto status = nlohmann::json::parse(ask(name, "/status"));
        if (wanted(status)) {
          return status;
        }
      } catch (const std::runtime_error&) {
        // it does not answer yet
      } catch (const std::out_of_range&) {
        // it has no peers yet
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  void await_round(const std::string& name, std::uint64_t round) const {
    await(name, [&](const auto& status) { return status.at("round") >= round; });
  }
  static const nlohmann::json& peer(const nlohmann::json& status, const std::string& name) {
    for (const auto& peer : status.at("peers")) {
      if (peer.at("name") == name) {
        return peer;
      }
    }
    throw std::out_of_range(name);
  }
  static const nlohmann::json& only_peer(const nlohmann::json& status) {
    const auto& peers = status.at("peers");
    return peers.size() == 1 ? peers.front() : throw std::out_of_range("peers");
  }
  void await_peer(const std::string& name, const std::string& other, bool up) const {
    await(name, [&](const auto& status) { return peer(status, other).at("up") == up; });
  }

 private:
  Scratch scratch_;
  std::vector<std::string> names_;
  std::string host_;
  std::map<std::string, std::string> keys_;
  std::map<std::string, int> ports_;
  std::map<std::string, int> monitors_;
  std::map<std::string, std::unique_ptr<Process>> processes_;
};

/// Mass that is at the sites, on its way between them, written off or taken away so that theirs
/// comes back to 1, less what was minted or made likewise.
inline double mass_error(const std::map<std::string, nlohmann::json>& results) {
  double error = 0;
  for (const auto& [name, site] : results) {
    error += site.at("mass").get<double>() + site.at("written_off").get<double>() -
             site.at("minted").get<double>() + site.at("mass_lowered").get<double>() -
             site.at("mass_raised").get<double>();
    for (const auto& peer : site.at("peers")) {
      error += peer.at("mass_given").get<double>() - peer.at("mass_taken").get<double>();
    }
  }
  return error;
}

}  // namespace sotto::test
