// What the programs of one site share: PROGRAM DATA SITE.toml NUMBER OF, for the NUMBER-th of OF
// parts of the data. SIGTERM ends it in good order; started again, it goes on.
#pragma once

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string_view>

#include <torch/torch.h>

#include <sotto/sites/torch/site_optimizer.h>
#include <sotto/study/site/site_file.h>

/// The part of the data that is a site's own.
struct Part {
  std::int64_t number = 0;  ///< from 1
  std::int64_t of = 0;

  /// This part of the first dimension.
  torch::Tensor cut(const torch::Tensor& all) const {
    const auto size = all.size(0) / of;
    return all.slice(0, (number - 1) * size, number * size);
  }
  /// Batches by this seed go on where a site that is started again was.
  std::uint64_t seed(const sotto::SiteOptimizer& site) const {
    return static_cast<std::uint64_t>(number) + 1000 * site.next_step();
  }
};

inline std::atomic<bool> stop = false;

inline std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Says now and then how a round has gone.
inline void print_round(const sotto::SiteStep& done, double loss) {
  if (done.exchanged && done.round % 20 == 0) {
    std::printf("round %llu: loss %.3f\n", static_cast<unsigned long long>(done.round), loss);
    std::fflush(stdout);
  }
}

/// Trains as the command line says. Returns the exit status.
inline int run_site_program(int argc, char** argv, const char* what,
                            void (*train)(const char* data, const char* file, Part part)) {
  const Part part = argc == 5 ? Part{number_in(argv[3]), number_in(argv[4])} : Part();
  if (part.number < 1 || part.number > part.of) {
    std::fprintf(stderr, "usage: %s %s SITE.toml NUMBER OF\n", argv[0], what);
    return 2;
  }
  std::signal(SIGTERM, [](int) { stop = true; });
  try {
    train(argv[1], argv[2], part);
    return 0;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 1;
  }
}
