// Sites with models and loops of their own, over real sockets: what a program sees of a
// SiteOptimizer when peers train beside it, leave, come back, or spoil its model.
#include <sotto/sites/process/site_optimizer.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/transport.h>
#include <sotto/sites/process/site_run.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/free_port.h"
#include "support/scratch.h"
#include "support/skip.h"

namespace sotto::test::site_optimizer_test {

namespace {

constexpr std::size_t kDimension = 40;

/// Sites that all trust each other, each with the objective ½‖x − c‖² for a centre c of its own.
class Federation {
 public:
  explicit Federation(std::size_t sites, sites::MixingKind exchange = sites::MixingKind::push_sum)
      : exchange_(exchange), first_port_(free_ports(static_cast<int>(sites))) {
    for (std::size_t k = 0; k < sites; ++k) {
      keys_.push_back(make_key_pair());
      TrustedPeer line;
      line.rank = static_cast<Rank>(k);
      line.name = fmt::format("site-{}", k);
      line.key = keys_.back().public_key;
      line.address = fmt::format("127.0.0.1:{}", first_port_ + static_cast<int>(k));
      lines_.push_back(line);
    }
  }

  SiteOptions options(std::size_t k) const {
    SiteOptions options{
        .security = {.own = keys_[k], .peers = std::make_shared<AllowList>(lines_)}};
    options.rank = static_cast<Rank>(k);
    options.name = lines_[k].name;
    options.exchange = exchange_;
    options.step_rule.learning_rate = 0.1;
    options.patience = std::chrono::milliseconds(5'000);
    options.found_after = std::chrono::milliseconds(5'000);
    return options;
  }
  /// For a site that waits for nobody before it begins.
  SiteOptions alone(std::size_t k) const {
    SiteOptions options = this->options(k);
    options.found_after = std::chrono::milliseconds(1);
    return options;
  }
  std::string folder(std::size_t k) const {
    return (scratch_.path() / fmt::format("state-{}", k)).string();
  }
  std::size_t size() const { return lines_.size(); }
  const Scratch& scratch() const { return scratch_; }

  static float centre(std::size_t k) { return 1 + static_cast<float>(k); }
  static double step(SiteOptimizer& site, std::size_t k, std::span<const float> x, Status& status,
                     SiteStep& done) {
    std::vector<float> gradient(x.size());
    double loss = 0;
    for (std::size_t e = 0; e < x.size(); ++e) {
      gradient[e] = x[e] - centre(k);
      loss += 0.5 * gradient[e] * gradient[e];
    }
    const auto result = site.step(gradient, loss);
    status = result.status();
    done = result.ok() ? *result : SiteStep();
    return loss;
  }

 private:
  Scratch scratch_;
  sites::MixingKind exchange_;
  int first_port_;
  std::vector<KeyPair> keys_;
  std::vector<TrustedPeer> lines_;
};

/// Sites exchange over ZeroMQ alone.
bool has_channels() {
  return std::ranges::any_of(transports(), [](const auto& transport) {
    return transport.name == "zmq" && transport.available;
  });
}

/// What a thread of a site has seen.
struct Seen {
  Status status;
  std::vector<float> parameters = std::vector<float>(kDimension);
  Round rounds = 0;
};

/// Trains site `k` for `rounds` rounds of the site's own count.
void train(const Federation& all, std::size_t k, Round rounds, Seen& seen) {
  SiteOptions options = all.options(k);
  options.rounds = rounds;
  SiteOptimizer site(options, all.folder(k), seen.parameters);
  seen.status = site.connect();
  SiteStep done;
  while (seen.status.ok() && !site.over()) {
    Federation::step(site, k, seen.parameters, seen.status, done);
  }
  seen.rounds = site.round();
  if (seen.status.ok()) {
    seen.status = site.finish();
  }
}

}  // namespace

TEST_CASE("sites with loops of their own come to the minimum of the sum of what they minimize") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  for (const auto exchange : {sites::MixingKind::push_sum, sites::MixingKind::gossip}) {
    const Federation all(3, exchange);
    std::vector<Seen> seen(3);
    std::vector<std::thread> threads;
    for (std::size_t k = 0; k < 3; ++k) {
      threads.emplace_back([&, k] { train(all, k, 120, seen[k]); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    double mean = 0;
    for (const Seen& one : seen) {
      CHECK_MESSAGE(one.status.ok(), one.status.message());
      CHECK(one.rounds >= 120);
      mean += one.parameters[0] / 3;
    }
    CAPTURE(exchange == sites::MixingKind::gossip);
    CHECK(std::abs(mean - 2) < 0.25);  // the mean of 1, 2 and 3, less what single steps pull
  }
}

TEST_CASE("a site that is dropped and made again goes on where it was, and its peers go on") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  std::vector<float> stays(kDimension);
  std::vector<float> goes(kDimension);
  SiteOptions patient = all.options(0);
  SiteOptimizer first(patient, all.folder(0), stays);
  auto second = std::make_optional<SiteOptimizer>(all.options(1), all.folder(1), goes);
  Status status;
  SiteStep done;
  const auto both = [&](int rounds) {
    std::thread other([&] {
      Status met;
      SiteStep step;
      for (int round = 0; round < rounds; ++round) {
        Federation::step(*second, 1, goes, met, step);
        CHECK_MESSAGE(met.ok(), met.message());
      }
    });
    for (int round = 0; round < rounds; ++round) {
      Federation::step(first, 0, stays, status, done);
      CHECK_MESSAGE(status.ok(), status.message());
    }
    other.join();
  };
  both(10);
  const Round before = second->round();
  const std::vector<float> model = goes;
  second.reset();  // without finish, as in a crash
  for (int round = 0; round < 5; ++round) {
    Federation::step(first, 0, stays, status, done);
    CHECK_MESSAGE(status.ok(), status.message());
  }
  std::fill(goes.begin(), goes.end(), 0.0F);
  second.emplace(all.options(1), all.folder(1), goes);
  CHECK(second->connect().ok());
  CHECK(second->round() >= before);
  CHECK(goes != std::vector<float>(kDimension));  // its state, or what peers sent since
  for (int tries = 0; tries < 2000 && first.report().peers[0].ups < 2; ++tries) {
    both(1);
  }
  CHECK(first.report().peers[0].ups >= 2);
  CHECK(first.finish().ok());
  CHECK(second->finish().ok());
}

TEST_CASE("a first step without connect is dropped where the state is another model") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  SiteOptions options = all.alone(0);
  options.communication_interval = 3;
  std::vector<float> parameters(kDimension);
  Status status;
  SiteStep done;
  {
    SiteOptimizer site(options, all.folder(0), parameters);
    for (int step = 0; step < 6; ++step) {
      CHECK(site.next_step() == static_cast<Round>(step));
      Federation::step(site, 0, parameters, status, done);
      REQUIRE_MESSAGE(status.ok(), status.message());
      CHECK_FALSE(done.dropped);
      CHECK(done.exchanged == (step % 3 == 2));
    }
    CHECK(site.round() == 2);
    CHECK(site.finish().ok());
    CHECK(site.finish().ok());  // again: nothing more
  }
  const std::vector<float> kept = parameters;
  std::fill(parameters.begin(), parameters.end(), 0.0F);
  SiteOptimizer site(options, all.folder(0), parameters);
  Federation::step(site, 0, parameters, status, done);
  CHECK(status.ok());
  CHECK(done.dropped);
  CHECK(parameters == kept);
  CHECK(site.next_step() == 6);
  Federation::step(site, 0, parameters, status, done);
  CHECK_FALSE(done.dropped);
  CHECK(parameters != kept);
}

TEST_CASE("a run of a task and a loop around an optimizer of its own are equal, bit for bit") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  const TaskFactory tasks(load_task("digits,train=200,test=100"), {.model = "softmax", .nodes = 1});
  SiteOptions options = all.alone(0);
  options.communication_interval = 2;
  options.rounds = 5;
  options.init = "";
  const auto task = tasks.make(0);
  std::vector<float> theirs(task->dimension());
  task->initialize(theirs, 0);
  std::vector<float> ours = theirs;
  const auto result = run_site(options, std::make_unique<SiteFolder>(all.folder(0)), *task, theirs,
                               2, [](const SiteEvent&) {});
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  CHECK(result->history.size() == 3);  // after 2, 4 and the last
  CHECK_FALSE(result->stopped);

  SiteOptimizer site(options, all.folder(1), ours, task->layout());
  std::vector<float> gradient(ours.size());
  REQUIRE(site.connect().ok());
  while (!site.over()) {
    const double loss = task->loss_and_gradient(site.next_step(), ours, gradient);
    REQUIRE(site.step(gradient, loss).ok());
  }
  REQUIRE(site.finish().ok());
  CHECK(ours == theirs);
  CHECK(site.result().parameters_sha256 == result->parameters_sha256);
}

TEST_CASE("a site's own mistakes are refused and change nothing") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  SiteOptions options = all.alone(0);
  std::vector<float> parameters(kDimension, 0.5F);
  SiteOptimizer site(options, all.folder(0), parameters);
  REQUIRE(site.connect().ok());
  CHECK_THROWS_AS((void)site.step(std::vector<float>(3)), Error);
  std::vector<float> gradient(kDimension);
  gradient[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(site.step(gradient).status().fault() == Fault::non_finite);
  gradient[7] = 0;
  CHECK(site.step(gradient, std::numeric_limits<double>::infinity()).status().fault() ==
        Fault::non_finite);
  CHECK(parameters == std::vector<float>(kDimension, 0.5F));
  CHECK(site.round() == 0);
  CHECK(site.step(gradient).ok());
  CHECK(site.round() == 1);

  std::vector<float> again(kDimension);
  CHECK_THROWS_AS(SiteOptimizer(options, all.folder(0), again), Error);  // the folder is held
  options.compressor = "no-such";
  CHECK_THROWS_AS(SiteOptimizer(options, all.folder(1), again), Error);
}

TEST_CASE("a site that is told to stop waits for nobody") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  std::atomic<bool> stop = true;
  SiteOptions options = all.options(0);
  options.stop = &stop;
  options.found_after = std::chrono::hours(10);
  options.patience = std::chrono::hours(10);
  std::vector<float> parameters(kDimension);
  SiteOptimizer site(options, all.folder(0), parameters);
  CHECK(site.connect().fault() == Fault::stopped);
  CHECK(site.over());
  CHECK(site.finish().ok());
}

TEST_CASE("sites compare the models that they begin with") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  std::vector<float> ours(kDimension, 1);
  std::vector<float> theirs(kDimension, 2);
  SiteOptions options = all.alone(0);
  SiteOptimizer site(options, all.folder(0), ours);
  const SiteOptimizer other(options, all.folder(1), theirs);
  const auto settings = [](const SiteOptimizer& one) { return one.result().report.settings; };
  CHECK(settings(site) != settings(other));
  CHECK(settings(site).find(model_digest(std::vector<float>(kDimension, 1))) != std::string::npos);
}

TEST_CASE("an observer takes in what comes and takes no step") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  SiteOptions options = all.alone(0);
  options.only_takes = true;
  std::vector<float> parameters(kDimension);
  SiteOptimizer site(options, all.folder(0), parameters);
  REQUIRE(site.connect().ok());
  CHECK_FALSE(site.trains());
  CHECK_THROWS_AS((void)site.step(std::vector<float>(kDimension)), Error);
  const auto done = site.relay();
  REQUIRE(done.ok());
  CHECK(done->exchanged);
  CHECK(site.round() == 1);
}

TEST_CASE("a site without a folder comes back as a new one, from a neighbour's model") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  std::atomic<bool> stop = false;
  Status stays;
  std::thread other([&] {
    std::vector<float> x(kDimension);
    SiteOptions options = all.options(0);
    options.stop = &stop;
    SiteOptimizer site(options, all.folder(0), x);
    stays = site.connect();
    SiteStep done;
    while (stays.ok() && !site.over()) {
      Federation::step(site, 0, x, stays, done);
    }
  });
  const auto live = [&](int rounds, bool anew) {
    std::vector<float> x(kDimension, anew ? 0.0F : -100.0F);
    SiteOptions options = all.options(1);
    options.init = model_digest(std::vector<float>(kDimension));
    SiteOptimizer site(options, "", x);
    CHECK(site.connect().ok());
    CHECK((anew || x[0] > -1));  // a neighbour's
    Status status;
    SiteStep done;
    for (int round = 0; round < rounds; ++round) {
      Federation::step(site, 1, x, status, done);
      CHECK_MESSAGE(status.ok(), status.message());
    }
    CHECK(site.report().saved_at == 0);
  };
  live(20, true);
  live(20, false);
  stop = true;
  other.join();
  CHECK_MESSAGE(stays.ok(), stays.message());
}

TEST_CASE("a site that writes now and then comes back as another one, with the model it wrote") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  SiteOptions options = all.alone(0);
  options.save_every = 4;
  std::vector<float> x(kDimension);
  options.init = model_digest(x);
  const auto life = [&](Round rounds, bool finish) {
    SiteOptimizer site(options, all.folder(0), x);
    CHECK(site.connect().ok());
    const sites::Incarnation mine = site.result().report.site.incarnation;
    Status status;
    SiteStep done;
    for (Round round = 0; round < rounds; ++round) {
      Federation::step(site, 0, x, status, done);
      REQUIRE_MESSAGE(status.ok(), status.message());
    }
    if (finish) {
      CHECK(site.finish().ok());
    }
    return mine;
  };
  const auto first = life(9, false);  // wrote rounds 0, 4 and perhaps 8
  const std::vector<float> last = x;
  std::fill(x.begin(), x.end(), 0.0F);
  const auto second = life(0, false);
  CHECK(second != first);
  CHECK(x[0] > 0);
  CHECK(x[0] <= last[0]);
  const auto third = life(3, true);
  const std::vector<float> ended = x;
  std::fill(x.begin(), x.end(), 0.0F);
  CHECK(life(0, false) == third);  // it ended in good order
  CHECK(x == ended);
  CHECK(life(0, false) != third);  // and did not, the second time
}

TEST_CASE("a long state is written beside the training, too, and is whole") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const std::vector<float> gradient(6'000'000, -1);  // no step waits for the memory of its copy
  const Federation all(2);
  SiteOptions options = all.alone(0);
  options.save_every = 2;
  std::vector<float> x(gradient.size());
  options.init = model_digest(x);
  {
    SiteOptimizer site(options, all.folder(0), x);
    REQUIRE(site.connect().ok());
    Round written = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (written == 0 && std::chrono::steady_clock::now() < end) {
      REQUIRE(site.step(gradient).ok());
      const auto found = read_site_state(all.folder(0));
      REQUIRE(found.ok());
      written = found->has_value() ? (*found)->state.round : 0;
    }
    CHECK(written > 0);
  }
  const float last = x[0];
  std::fill(x.begin(), x.end(), 0.0F);
  SiteOptimizer site(options, all.folder(0), x);
  REQUIRE(site.connect().ok());
  CHECK(x[0] > 0);
  CHECK(x[0] <= last);
  CHECK(std::ranges::count(x, x[0]) == std::ssize(x));
}

TEST_CASE("a site that has not begun, or was refused, leaves its folder as it is") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  SiteOptions options = all.alone(0);
  std::vector<float> x(kDimension);
  options.init = model_digest(x);
  Status status;
  SiteStep done;
  const auto rounds_kept = [&] {
    std::fill(x.begin(), x.end(), 0.0F);
    SiteOptimizer site(options, all.folder(0), x);
    CHECK(site.connect().ok());
    return site.round();
  };
  {
    SiteOptimizer site(options, all.folder(0), x);
    for (int round = 0; round < 3; ++round) {
      Federation::step(site, 0, x, status, done);
      REQUIRE(status.ok());
    }
  }
  {
    SiteOptimizer site(options, all.folder(0), x);
    CHECK(site.finish().ok());  // before connect
    CHECK_THROWS_AS((void)site.connect(), Error);
    CHECK_THROWS_AS((void)site.step(x), Error);
  }
  CHECK(rounds_kept() >= 2);  // the last round was offered, and counts as ended
  {
    SiteOptions others = options;
    others.step_rule.learning_rate = 0.7;
    SiteOptimizer site(others, all.folder(0), x);
    CHECK_THROWS_AS((void)site.connect(), Error);  // other settings
    CHECK_FALSE(site.connect().ok());
    CHECK_FALSE(site.finish().ok());
  }
  CHECK(rounds_kept() >= 2);
}

TEST_CASE("no step follows the end, and a fault of the site is in its report") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  SiteOptions options = all.alone(0);
  std::vector<float> x(kDimension);
  SiteOptimizer site(options, all.folder(0), x);
  CHECK(site.report().phase == SitePhase::starting);
  REQUIRE(site.connect().ok());
  REQUIRE(site.step(x).ok());

  std::vector<std::string> events;
  SiteOptions taken = all.options(1);
  taken.listen = site.report().address;  // which is taken
  std::vector<float> y(kDimension);
  SiteOptimizer other(taken, all.folder(1), y, {},
                      [&](const SiteEvent& event) { events.emplace_back(name_of(event.kind)); });
  CHECK_FALSE(other.connect().ok());
  CHECK(other.report().phase == SitePhase::failed);
  CHECK(events.back() == "failed");
  CHECK_FALSE(other.step(y).ok());

  REQUIRE(site.finish().ok());
  CHECK(site.report().phase == SitePhase::done);
  CHECK(site.result().report.peers.size() == 1);
  CHECK_THROWS_AS((void)site.step(x), Error);
  CHECK_THROWS_AS((void)site.relay(), Error);
}

TEST_CASE("a listener that throws at every event ends the site, and not the process") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  std::vector<float> x(kDimension);
  std::atomic<bool> throws = false;
  SiteOptimizer site(all.alone(0), all.folder(0), x, {}, [&](const SiteEvent&) {
    if (throws) {
      throw std::runtime_error("the disk is full");
    }
  });
  REQUIRE(site.connect().ok());
  throws = true;
  std::vector<float> y(kDimension);
  SiteOptimizer other(all.alone(1), all.folder(1), y);
  REQUIRE(other.connect().ok());  // the site's own thread hears of it, while its caller is away
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
       site.report().phase != SitePhase::failed && std::chrono::steady_clock::now() < end;) {
    std::this_thread::yield();
  }
  CHECK(site.report().phase == SitePhase::failed);
  CHECK(site.step(x).status().fault() == Fault::unexpected);
  CHECK(site.finish().message() == "the disk is full");
}

TEST_CASE("a site whose key a newer process has says so as it ends") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(2);
  std::vector<float> y(kDimension);
  SiteOptimizer peer(all.alone(1), all.folder(1), y);
  REQUIRE(peer.connect().ok());
  const std::string folder = all.scratch().path() / "copy";
  { const SiteFolder made(folder); }
  std::ofstream(folder + "/life") << SiteFolder::life_by_clock() + 100 << "\n";
  SiteOptions options = all.options(0);
  options.listen = fmt::format("127.0.0.1:{}", free_port());
  std::vector<float> z(kDimension);
  SiteOptimizer copy(options, folder, z);
  REQUIRE(copy.connect().ok());  // the peer has met it
  REQUIRE(copy.finish().ok());

  std::vector<SiteEvent::Kind> events;
  std::vector<float> x(kDimension);
  SiteOptimizer site(all.options(0), all.folder(0), x, {},
                     [&](const SiteEvent& event) { events.push_back(event.kind); });
  // The peer's hello comes first, and what it says of the newer process behind it.
  Status status = site.connect();
  while (status.ok()) {
    status = site.step(std::vector<float>(kDimension)).status();
  }
  CHECK(site.report().phase == SitePhase::failed);
  CHECK(events.back() == SiteEvent::Kind::newer_process);
}

TEST_CASE("a list that changes again while a site waits for others is in force at once") {
  if (!has_channels()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Federation all(3);
  const std::filesystem::path file = all.scratch().path() / "peers.csv";
  SiteOptions options = all.options(0);  // it dials the others, which never come
  const std::vector<TrustedPeer> lines = options.security.peers->peers();
  const auto list_of = [&](std::size_t count) {
    std::string text = "name,key,address\n";
    for (std::size_t k = 0; k < count; ++k) {
      text += fmt::format("{},{},{}\n", lines[k].name, lines[k].key.text(), lines[k].address);
    }
    const std::filesystem::path beside = all.scratch().path() / "next.csv";
    std::ofstream(beside) << text;
    std::filesystem::rename(beside, file);
  };
  list_of(3);
  std::atomic<bool> stop = false;
  std::atomic<int> told = 0;
  std::atomic<int> refused = 0;
  options.peers_file = file.string();
  options.found_after = std::chrono::hours(1);
  options.stop = &stop;
  std::vector<float> x(kDimension);
  SiteOptimizer site(options, all.folder(0), x, {}, [&](const SiteEvent& event) {
    told += event.kind == SiteEvent::Kind::peers_file ? 1 : 0;
    refused += event.kind == SiteEvent::Kind::peers_refused ? 1 : 0;
  });
  Status status;
  std::thread waits([&] { status = site.connect(); });
  const auto in_force = [&](std::size_t count) {
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
         std::chrono::steady_clock::now() < end;) {
      if (options.security.peers->peers().size() == count) {
        return true;
      }
      std::this_thread::yield();
    }
    return false;
  };
  list_of(2);
  CHECK(in_force(2));
  list_of(3);
  CHECK(in_force(3));
  list_of(2);
  CHECK(in_force(2));
  // One that is wrong is refused, and has not changed what is in force.
  std::ofstream(all.scratch().path() / "next.csv") << "nonsense\n";
  std::filesystem::rename(all.scratch().path() / "next.csv", file);
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
       refused == 0 && std::chrono::steady_clock::now() < end;) {
    std::this_thread::yield();
  }
  stop = true;
  waits.join();
  CHECK(status.fault() == Fault::stopped);
  CHECK(told >= 1);
  CHECK(told <= 3);
  CHECK(refused == 1);
  CHECK(options.security.peers->peers().size() == 2);
}

}  // namespace sotto::test::site_optimizer_test
