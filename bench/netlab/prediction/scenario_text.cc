#include "scenario_text.h"

#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/file_descriptor.h>

namespace sotto::netlab {

study::Scenario scenario_from(const std::string& text) {
  const FileDescriptor file(::memfd_create("scenario", MFD_CLOEXEC));
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw Error("a scenario could not be kept in memory");
  }
  return study::read_scenario(fmt::format("/proc/self/fd/{}", file.get()));
}

std::string MadeScenario::text() const {
  const std::string hosts = mbit_per_s > 0
                                ? fmt::format(
                                      "hosts = [{{ nodes = \"all\", up = \"{0} Mbit/s\", "
                                      "down = \"{0} Mbit/s\" }}]\n",
                                      mbit_per_s)
                                : "";
  return fmt::format(
      "sotto-scenario = 1\n"
      "title = \"{}\"\n"
      "run = [\"{}\"]\n"
      "seed = {}\n"
      "[nodes]\n"
      "count = {}\n"
      "gradient = \"{}\"\n"
      "[network]\n"
      "link = {{ latency = \"{} ms\", loss = {} }}\n"
      "{}"
      "[task]\n"
      "model = \"{}\"\n"
      "batch = {}\n"
      "rounds = {}\n",
      title, words, seed, nodes, gradient, latency_ms, loss, hosts, model, batch, rounds);
}

}  // namespace sotto::netlab
