#include "place.h"

#include <cstdio>
#include <exception>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace sotto::peers {

void add_place_options(CLI::App& program, Place& place) {
  program.add_option("--rank", place.rank, "This process, from 0")->required();
  program.add_option("--size", place.size, "How many there are")->required();
  program.add_option("--store", place.store, "An empty folder to meet in")->required();
  program.add_option("--address", place.address, "To listen on");
  program.add_option("--timeout", place.timeout_s, "Seconds after which any wait is a failure");
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
