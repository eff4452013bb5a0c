// Two sites, each with a loss and a loop of its own, that train one model over the network and
// outlive each other. Here they are threads of one process; each would be a program at its own
// place, with its own folder and the other's public key.
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sotto/base/start_threads.h>
#include <sotto/comm/trust/key_file.h>
#include <sotto/sites/process/site_optimizer.h>
#include <sotto/sites/process/site_settings.h>

namespace {

namespace fs = std::filesystem;

/// What `sotto keygen` and an exchange of public keys leave behind: key files and a list. The first
/// site listens, and the other dials, as from behind a NAT.
void exchange_keys(const fs::path& folder, const std::vector<std::string>& names) {
  std::string address = "127.0.0.1:" + std::to_string(20'000 + ::getpid() % 12'000);
  std::ofstream list(folder / "peers.csv");
  list << "name,key,address\n";
  for (const std::string& name : names) {
    const sotto::KeyPair keys = sotto::make_key_pair();
    sotto::write_key_file((folder / (name + ".key")).string(), name, keys);
    list << name << ',' << keys.public_key.text() << ',' << address << '\n';
    address.clear();
  }
}

/// Trains x for `rounds` rounds on the loss ½‖x − target‖², as a site of this name.
sotto::Status train(const fs::path& folder, const std::string& name, float target,
                    std::vector<float>& x) {
  sotto::SiteSettings settings;
  settings.names = {.name = name,
                    .key = (folder / (name + ".key")).string(),
                    .peers = (folder / "peers.csv").string(),
                    .listen = ""};
  settings.state = (folder / (name + "-state")).string();
  settings.training.algorithm = "choco";
  settings.training.compressor = "sign";
  settings.training.lr = 0.05;
  settings.rounds = 200;
  settings.found_after_s = 10;
  sotto::SiteOptimizer site(options_of(settings), state_of(settings), x);
  sotto::Status status = site.connect();
  std::vector<float> gradient(x.size());
  while (status.ok() && !site.over()) {
    double loss = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      gradient[i] = x[i] - target;
      loss += 0.5 * gradient[i] * gradient[i];
    }
    status = site.step(gradient, loss).status();
  }
  return status.ok() ? site.finish() : status;
}

int run() {
  const fs::path folder =
      fs::temp_directory_path() / ("sotto-own-site-" + std::to_string(::getpid()));
  fs::remove_all(folder);
  fs::create_directory(folder);
  const std::vector<std::string> names = {"bank", "lab"};
  exchange_keys(folder, names);
  std::vector<std::vector<float>> models(2, std::vector<float>(1000));
  std::vector<sotto::Status> ends(2);
  sotto::run_side_by_side(2, "sites", [&](std::size_t k) {
    ends[k] = train(folder, names[k], static_cast<float>(k + 1), models[k]);
  });
  fs::remove_all(folder);
  for (std::size_t k = 0; k < ends.size(); ++k) {
    std::printf("%s: x[0] = %.3f\n", ends[k].ok() ? "done" : ends[k].message().c_str(),
                static_cast<double>(models[k][0]));
  }
  const double mean = (static_cast<double>(models[0][0]) + static_cast<double>(models[1][0])) / 2;
  return ends[0].ok() && ends[1].ok() && std::abs(mean - 1.5) < 0.3 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 1;
  }
}
