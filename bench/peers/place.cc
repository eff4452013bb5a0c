#include "place.h"

#include <cstdio>
#include <exception>
#include <stdexcept>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/error.h>

namespace sotto::peers {

void add_place_options(CLI::App& program, Place& place) {
  program.add_option("--rank", place.rank, "This process, from 0")
      ->required()
      ->check(CLI::Range(0, 1'000'000'000));
  program.add_option("--size", place.size, "How many there are")
      ->required()
      ->check(CLI::Range(1, 1'000'000'000));
  program.add_option("--store", place.store, "An empty folder to meet in")->required();
  program.add_option("--address", place.address, "To listen on");
  program.add_option("--timeout", place.timeout_s, "Seconds after which any wait is a failure")
      ->check(CLI::Range(0.001, 1e6));
}

int run_peer(CLI::App& program, int argc, char** argv, const std::function<void()>& work) {
  const auto complain = [&](const std::exception& error, int status) {
    fmt::print(stderr, "{}: {}\n", program.get_name(), error.what());
    return status;
  };
  try {
    program.parse(argc, argv);
    work();
    return 0;
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  } catch (const Error& error) {
    return complain(error, 2);
  } catch (const std::invalid_argument& error) {
    return complain(error, 2);
  } catch (const std::exception& error) {
    return complain(error, 1);
  }
}

}  // namespace sotto::peers
