#include "gloo_place.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>

#include <fmt/format.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <CLI/CLI.hpp>

namespace sotto::peers {

void add_place_options(CLI::App& program, GlooPlace& place) {
  program.add_option("--rank", place.rank, "This process, from 0")->required();
  program.add_option("--size", place.size, "How many there are")->required();
  program.add_option("--store", place.store, "An empty folder to meet in")->required();
  program.add_option("--address", place.address, "To listen on");
  program.add_option("--timeout", place.timeout_s, "Seconds after which any wait is a failure");
}

std::shared_ptr<gloo::Context> meet(const GlooPlace& place, const std::string& name, int rank,
                                    int size) {
  gloo::rendezvous::FileStore files(place.store);
  gloo::rendezvous::PrefixStore store(name, files);
  auto device = gloo::transport::tcp::CreateDevice(place.address.c_str());
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->setTimeout(std::chrono::milliseconds(static_cast<std::int64_t>(1000 * place.timeout_s)));
  context->connectFullMesh(store, device);
  return context;
}

void meet_again(const std::shared_ptr<gloo::Context>& context) {
  gloo::BarrierOptions options(context);
  gloo::barrier(options);
}

int run_peer(CLI::App& program, int argc, char** argv, const std::function<void()>& work) {
  try {
    program.parse(argc, argv);
    work();
    return 0;
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program.get_name(), error.what());
    return 1;
  }
}

}  // namespace sotto::peers
