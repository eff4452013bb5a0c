#include "contender_words.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <regex>
#include <thread>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/comm/deadline.h>
#include <sotto/console/child.h>
#include <sotto/console/signals.h>

#include "bench/support/train_words.h"

namespace sotto::netlab {
namespace {

constexpr std::size_t kFeatures = 784;
constexpr std::size_t kClasses = 10;
/// An MPI job has one process that starts the others.
constexpr const char* kMpirun = "/usr/bin/mpirun";
constexpr const char* kUnshare = "/usr/bin/unshare";

std::string built(const std::string& name) { return SOTTO_PEERS_BUILD "/" + name; }
std::string source(const std::string& name) { return SOTTO_PEERS_SOURCE "/" + name; }

bool runs(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

std::optional<std::string> missing_torch(const std::string& python) {
  constexpr std::chrono::seconds kPatience{60};
  constexpr std::chrono::milliseconds kTorchLook{10};
  if (!runs(python)) {
    return fmt::format("no Python is at {}; --python names another", python);
  }
  const Deadline deadline = Deadline::after(kPatience);
  console::Child child({python, "-c", "import torch.distributed"});
  while (!child.ended() && !deadline.expired() && !console::stop_requested()) {
    std::this_thread::sleep_for(kTorchLook);
  }
  return child.ended() == 0
             ? std::nullopt
             : std::optional(fmt::format("{} has no PyTorch (python3-torch)", python));
}

std::vector<std::string> split(std::string_view words) {
  std::vector<std::string> all;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    all.emplace_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return all;
}

using Words = std::vector<std::string>;

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

/// What all call alike.
Words length_words(const JobRequest& request) {
  return {fmt::format("--rounds={}", request.rounds),
          fmt::format("--timeout={:g}", request.timeout_s)};
}

/// What all that train call alike.
Words training_words(const TrainingSettings& training, std::uint64_t seed) {
  return {fmt::format("--batch={}", training.batch), fmt::format("--lr={:g}", training.lr),
          fmt::format("--eval-every={}", training.eval_every), fmt::format("--seed={}", seed)};
}

/// What `sotto train` and gloo_trainer call alike.
Words task_words(const TrainingSettings& training, int hidden) {
  return {"--task=" + training.task_spec(), "--model=" + training.model_spec(hidden)};
}

Words train_words(const Contender& contender, const JobRequest& request,
                  const TrainingSettings& training, const Testbed& testbed,
                  const std::string& folder, Host host) {
  Words words = bench::train_words(contender.words);
  append(words, length_words(request));
  append(words, task_words(training, request.hidden));
  append(words, training_words(training, request.seed));
  words.push_back("--step-rule=" + training.step_rule);
  append(words,
         {fmt::format("--transport={}", contender.transport), "--bind=" + testbed.address(host),
          "--insecure", "--rendezvous=file:" + folder, "--quiet"});
  if (host == 0) {
    words.emplace_back("--json=-");
  }
  return words;
}

/// How all peers that are started one by one hear where they stand.
Words place_words(const Testbed& testbed, const std::string& folder, Host host) {
  return {fmt::format("--rank={}", host), fmt::format("--size={}", testbed.hosts()),
          "--store=" + folder};
}

Words step_words(const Contender& contender, const JobRequest& request, const Testbed& testbed,
                 const std::string& folder, Host host) {
  Words words = place_words(testbed, folder, host);
  append(words, length_words(request));
  append(words, bench::train_words(contender.words));
  append(words, {fmt::format("--transport={}", contender.transport),
                 "--address=" + testbed.address(host), fmt::format("--seed={}", request.seed),
                 fmt::format("--elements={}", elements_of(request.hidden))});
  return words;
}

Words gloo_words(const Contender& contender, const JobRequest& request, const Testbed& testbed,
                 const std::string& folder, Host host) {
  Words words = place_words(testbed, folder, host);
  words.push_back("--address=" + testbed.address(host));
  append(words, length_words(request));
  if (const auto& training = request.training) {
    append(words, task_words(*training, request.hidden));
    append(words, training_words(*training, request.seed));
  } else {
    words.push_back(fmt::format("--elements={}", elements_of(request.hidden)));
  }
  words.emplace_back("--collective");
  append(words, split(contender.words));
  return words;
}

Words ddp_words(const Contender& contender, const JobRequest& request, const Testbed& testbed,
                const std::string& folder, Host host) {
  Words words = place_words(testbed, folder, host);
  append(words, length_words(request));
  words.push_back(fmt::format("--hook={}", contender.words));
  if (const auto& training = request.training) {
    append(words, task_words(*training, request.hidden));
    append(words, training_words(*training, request.seed));
    words.push_back("--step-rule=" + training->step_rule);
  } else {
    words.push_back(fmt::format("--model=mlp:{}", request.hidden));
  }
  return words;
}

/// mpirun's daemons run on the hosts as if they were machines; all die with the first process of a
/// process namespace, however that ends.
Process mpi_process(const Contender& contender, const JobRequest& request, const Testbed& testbed,
                    const std::string& folder) {
  Words words = {kUnshare,
                 "--pid",
                 "--fork",
                 "--kill-child=KILL",
                 kMpirun,
                 "--allow-run-as-root",
                 "--oversubscribe",
                 "--mca",
                 "mpi_yield_when_idle",
                 "1",
                 "--bind-to",
                 "none",
                 "--mca",
                 "pml",
                 "ob1",
                 "--mca",
                 "btl",
                 "tcp,self"};
  if (testbed.emulated()) {
    std::string hosts;
    for (Host host = 0; host < testbed.hosts(); ++host) {
      const std::string name = shaped_address(host);
      hosts += (host == 0 ? "" : ",") + name;
      std::filesystem::create_symlink(
          fmt::format("/proc/{}/fd/{}", ::getpid(), testbed.at(host)->fd()), folder + "/" + name);
    }
    append(words, {"--host", hosts, "--mca", "plm_rsh_agent", source("mpi_agent.sh") + " " + folder,
                   "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "oob_tcp_if_include",
                   "10.77.0.0/24", "--mca", "btl_tcp_if_include", "10.77.0.0/24"});
  } else {
    append(words, {"-n", fmt::to_string(testbed.hosts()), "--mca", "btl_tcp_if_include", "lo",
                   "--mca", "oob_tcp_if_include", "lo"});
  }
  append(words, {built("mpi_peer"), fmt::format("--elements={}", elements_of(request.hidden))});
  append(words, length_words(request));
  append(words, split(contender.words));
  return {.words = words, .variables = {{"TMPDIR", folder}}};
}

}  // namespace

std::string TrainingSettings::model_spec(int hidden) const {
  return model.empty() ? fmt::format("mlp:{}", hidden) : model;
}

std::optional<std::string> TrainingSettings::unknown_to(Runner runner) const {
  if (runner == Runner::gloo_trainer && step_rule != "sgd") {
    return "its program steps by plain SGD alone";
  }
  static const std::regex images("(mnist:[^,]*)?");
  static const std::regex text("text:[^,]*(,context=[0-9]+)?");
  static const std::regex perceptron("(mlp:[0-9]+)?");
  static const std::regex transformer("transformer(:[0-9]+,[0-9]+,[0-9]+)?");
  const bool known = (std::regex_match(task, images) && std::regex_match(model, perceptron)) ||
                     (std::regex_match(task, text) && std::regex_match(model, transformer));
  if (runner == Runner::ddp_peer && !known) {
    return "PyTorch's program trains perceptrons on MNIST (mlp:N) and transformers on text "
           "(transformer:LAYERS,WIDTH,HEADS)";
  }
  return std::nullopt;
}

std::size_t elements_of(int hidden) {
  const auto units = static_cast<std::size_t>(hidden);
  return (kFeatures + 1) * units + (units + 1) * kClasses;
}

int hidden_for(std::size_t elements) {
  constexpr std::size_t kPerUnit = kFeatures + 1 + kClasses;
  const std::size_t units =
      (std::max(elements, kClasses + kPerUnit) - kClasses + kPerUnit - 1) / kPerUnit;
  return static_cast<int>(units);
}

std::optional<std::string> Runners::missing(Runner runner) const {
  switch (runner) {
    case Runner::sotto:
      return std::nullopt;  // looked for when the command line is read
    case Runner::sotto_peer:
      return runs(built("sotto_peer")) ? std::nullopt
                                       : std::optional<std::string>("it was not built");
    case Runner::gloo_peer:
    case Runner::gloo_trainer:
      return runs(built("gloo_peer")) ? std::nullopt
                                      : std::optional<std::string>("built without libgloo-dev");
    case Runner::mpi_peer:
      if (!runs(built("mpi_peer"))) {
        return "built without libopenmpi-dev";
      }
      return runs(kMpirun) ? std::nullopt
                           : std::optional<std::string>("no mpirun is here (openmpi-bin)");
    case Runner::ddp_peer:
      return missing_torch(python);
  }
  return std::nullopt;
}

std::vector<Process> processes_of(const Contender& contender, const JobRequest& request,
                                  const Testbed& testbed, const Runners& runners,
                                  const std::string& folder) {
  if (contender.runner == Runner::mpi_peer) {
    return {mpi_process(contender, request, testbed, folder)};
  }
  std::vector<Process> all;
  for (Host host = 0; host < testbed.hosts(); ++host) {
    Process process = {.host = host, .words = {}, .variables = {}};
    switch (contender.runner) {
      case Runner::sotto:
        process.words = {runners.sotto, "train"};
        check(request.training.has_value(), "`sotto train` has something to learn");
        append(process.words,
               train_words(contender, request, *request.training, testbed, folder, host));
        process.variables = {{"RANK", fmt::to_string(host)},
                             {"WORLD_SIZE", fmt::to_string(testbed.hosts())}};
        break;
      case Runner::sotto_peer:
        process.words = {built("sotto_peer")};
        append(process.words, step_words(contender, request, testbed, folder, host));
        break;
      case Runner::ddp_peer:
        process.words = {runners.python, source("ddp_peer.py")};
        append(process.words, ddp_words(contender, request, testbed, folder, host));
        process.variables = {{"GLOO_SOCKET_IFNAME", testbed.device()}, {"OMP_NUM_THREADS", "1"}};
        break;
      default:
        process.words = {
            built(contender.runner == Runner::gloo_trainer ? "gloo_trainer" : "gloo_peer")};
        append(process.words, gloo_words(contender, request, testbed, folder, host));
    }
    all.push_back(std::move(process));
  }
  return all;
}

}  // namespace sotto::netlab
