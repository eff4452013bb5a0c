#include "site_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include <sotto/base/text.h>
#include <sotto/comm/trust/key_file.h>
#include <sotto/comm/trust/peers_file.h>
#include <sotto/sites/nodes/state/site_folder.h>

#include "site_name.h"

namespace sotto::sitelab {
namespace {

namespace fs = std::filesystem;

/// Examples of a site, and steps between evaluations, of which there are none on the way.
constexpr int kExamples = 100;
constexpr int kJudged = 2000;
constexpr std::uint64_t kSeldom = 1'000'000'000;

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) {
    throw std::runtime_error(fmt::format("{} could not be written", path));
  }
}

constexpr const char* kModel = "softmax";
constexpr double kRate = 0.05;

std::string task_of(const FaultPlan& plan, int tested = kExamples) {
  return fmt::format("digits,train={},test={}", kExamples * plan.sites, tested);
}

std::string training_text(const FaultPlan& plan, Rank site, std::uint64_t seed) {
  const bool push_sum = plan.exchange == sites::MixingKind::push_sum;
  std::string text = fmt::format(
      "[training]\ntask = \"{}\"\nmodel = \"{}\"\npart = \"{}/{}\"\n"
      "algorithm = \"{}\"\ncommunication-interval = {}\nlr = {}\nseed = {}\neval-every = {}\n"
      "gradient-time = \"{} ns\"\n",
      task_of(plan), kModel, site + 1, plan.sites,
      push_sum            ? "pushsum"
      : plan.rule.empty() ? "choco"
                          : "robust",
      plan.interval, kRate, seed, kSeldom, plan.gradient);
  if (plan.rule.empty()) {
    text += fmt::format("compressor = {}\n", toml_text(plan.compressor));
  } else {
    text += fmt::format("rule = {}\n", toml_text(plan.rule));
  }
  return text;
}

}  // namespace

std::shared_ptr<const TaskData> load_site_data(const FaultPlan& plan) {
  return load_task(task_of(plan));
}

std::unique_ptr<Task> make_site_task(const FaultPlan& plan, std::optional<Rank> site) {
  TaskOptions options;
  options.model = kModel;
  options.nodes = site ? plan.sites : 1;
  return TaskFactory(load_site_data(plan), std::move(options)).make(site.value_or(0));
}

SiteJudge::SiteJudge(const FaultPlan& plan) {
  TaskOptions options;
  options.model = kModel;
  task_ = TaskFactory(load_task(task_of(plan, kJudged)), std::move(options)).make(0);
}

SiteFiles::SiteFiles(std::string folder, Rank site, const KeyPair& keys, std::uint64_t seed)
    : folder_(std::move(folder)), site_(site), seed_(seed) {
  fs::create_directories(folder_ + "/kept");
  write_key_file(folder_ + "/site.key", site_name(site), keys);
}

void SiteFiles::write_site(const FaultPlan& plan, int port, int monitor) const {
  const auto ms = [](SimTime time) { return std::max<SimTime>(time / 1'000'000, 1); };
  write_text(site_file(),
             fmt::format("sotto-site = 1\nname = \"{}\"\nkey = \"site.key\"\n"
                         "peers = \"peers.csv\"\nstate = \"state\"\nlisten = \"127.0.0.1:{}\"\n"
                         "monitor = \"127.0.0.1:{}\"\n\n{}\n[network]\ntimeout = \"{} ms\"\n"
                         "patience = \"{} ms\"\nfound-after = \"{} ms\"\nslack = {}\nwindow = {}\n",
                         site_name(site_), port, monitor, training_text(plan, site_, seed_),
                         ms(plan.silence), ms(plan.patience), ms(plan.found_after), plan.slack,
                         plan.window));
}

SiteOptions SiteFiles::options(const FaultPlan& plan) const {
  const KeyPair keys = read_key_file(folder_ + "/site.key");
  auto lines = read_peers_file(folder_ + "/peers.csv", PeerNumbers::of_names);
  const auto own = std::ranges::find(lines, keys.public_key, &TrustedPeer::key);
  const Rank rank = own == lines.end() ? Rank{0} : own->rank;
  SiteOptions options{.security = {keys, std::make_shared<AllowList>(std::move(lines))},
                      .rank = rank};
  options.name = site_name(site_);
  options.exchange = plan.exchange;
  options.compressor = plan.rule.empty() ? plan.compressor : "none";
  options.rule = plan.rule;
  options.step_rule.learning_rate = kRate;
  options.communication_interval = plan.interval;
  options.slack = plan.slack;
  options.window = plan.window;
  options.seed = seed_;
  return options;
}

void SiteFiles::write_peers(const std::vector<RealPeer>& lines) const {
  std::string text = "name,key,address,may_send,send_to\n";
  for (const RealPeer& line : lines) {
    text += fmt::format("{},{},127.0.0.1:{},{},{}\n", site_name(line.site), line.key.text(),
                        line.port, line.may_send ? "yes" : "no", line.send_to ? "yes" : "no");
  }
  write_text(folder_ + "/peers.new", text);
  fs::rename(folder_ + "/peers.new", folder_ + "/peers.csv");
}

void SiteFiles::keep_state(std::string_view name) {
  const std::string copy = fmt::format("{}/kept/{}", folder_, ++copies_);
  std::error_code code;
  // A new state takes the name over and leaves this one as it is: a link is a copy.
  fs::create_hard_link(fmt::format("{}/{}", state(), name), copy, code);
  if (code) {
    return;
  }
  kept_.push_back(copy);
  if (kept_.size() > kKept) {
    fs::remove(kept_.front(), code);
    kept_.pop_front();
  }
}

bool SiteFiles::restore(std::uint64_t back) {
  if (kept_.empty()) {
    return false;
  }
  kept_.resize(kept_.size() - std::min<std::size_t>(back, kept_.size() - 1));
  fs::remove_all(state());
  fs::create_directories(state());
  fs::permissions(state(), fs::perms::owner_all);
  fs::copy_file(kept_.back(), state() + "/state.a");
  const auto found = read_site_state(state());
  if (found.ok() && found->has_value()) {
    // The count of starts is on the same disk.
    write_text(state() + "/life", fmt::format("{}\n", (*found)->state.life));
  }
  return true;
}

bool SiteFiles::corrupt() {
  const auto found = read_site_state(state());
  if (!found.ok() || !found->has_value()) {
    return false;
  }
  const std::string& path = (*found)->file;
  std::ifstream in(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  char& byte = bytes[bytes.size() / 2];
  byte = static_cast<char>(byte ^ 0x10);
  write_text(path + ".new", bytes);  // a file of its own: copies that are kept stay whole
  fs::rename(path + ".new", path);
  if (!read_site_state(state()).ok()) {
    lose();  // there was no other: the site refuses to start, and whoever runs it starts anew
  }
  return true;
}

void SiteFiles::lose() {
  fs::remove_all(state());
  kept_.clear();
}

void SiteFiles::copy_state(const SiteFiles& from) const {
  fs::copy(from.state(), state(), fs::copy_options::recursive);
}

}  // namespace sotto::sitelab
