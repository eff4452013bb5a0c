// The program `mpi_peer`: one process of a job that averages a gradient through MPI_Allreduce
// and steps along it, or swaps buffers of a given size with its neighbours on a ring, two where
// there are more than two processes, through MPI_Neighbor_alltoallv. Rank 0 prints "warm" when the
// measured rounds begin, and JSON at the end.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "place.h"
#include "round_times.h"

namespace {

using sotto::peers::RoundTimes;

/// The learning rate of the step along a mean.
constexpr float kRate = 0.01F;

struct Request {
  std::size_t elements = 1'000'000;
  double bits = 0;
  sotto::peers::RoundTimesRequest times;
  unsigned timeout_s = 600;
};

void add_options(CLI::App& program, Request& request) {
  program.add_option("--elements", request.elements, "Length of the vector");
  program.add_option("--neighbour-bits", request.bits,
                     "Swap so many bits an element with each neighbour; 0: all-reduce of floats");
  add_round_options(program, request.times);
  program.add_option("--timeout", request.timeout_s,
                     "Seconds after which a process whose round is not over ends itself");
}

/// MPI ends all processes when a call fails: that is what MPI_COMM_WORLD's handler does.
class Mpi {
 public:
  Mpi() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  ~Mpi() { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank = 0;
  int size = 1;
};

/// In place, and a step along the mean; all gradients start from rank + 1.
std::function<void()> allreduce(const Mpi& mpi, std::vector<float>& gradient,
                                std::vector<float>& x) {
  std::ranges::fill(gradient, static_cast<float>(mpi.rank + 1));
  return [&] {
    MPI_Allreduce(MPI_IN_PLACE, gradient.data(), static_cast<int>(gradient.size()), MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
    const float share = 1.0F / static_cast<float>(mpi.size);
    for (std::size_t i = 0; i < x.size(); ++i) {
      gradient[i] *= share;
      x[i] -= kRate * gradient[i];
    }
  };
}

/// On a ring, which two processes close with one edge.
std::vector<int> neighbours_of(const Mpi& mpi) {
  const int right = (mpi.rank + 1) % mpi.size;
  return mpi.size == 2 ? std::vector{right}
                       : std::vector{(mpi.rank + mpi.size - 1) % mpi.size, right};
}

/// Both buffers have a part a neighbour.
std::function<void()> swap_with_neighbours(const std::vector<int>& around, int rank, int bytes,
                                           std::vector<char>& out, std::vector<char>& in) {
  const auto degree = static_cast<int>(around.size());
  MPI_Comm ring = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, around.data(), MPI_UNWEIGHTED, degree,
                                 around.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
  out.assign(around.size() * static_cast<std::size_t>(bytes), static_cast<char>(rank));
  in.resize(out.size());
  return [&out, &in, ring, bytes] {
    const std::array<int, 2> counts = {bytes, bytes};
    const std::array<int, 2> places = {0, bytes};
    MPI_Neighbor_alltoallv(out.data(), counts.data(), places.data(), MPI_CHAR, in.data(),
                           counts.data(), places.data(), MPI_CHAR, ring);
  };
}

RoundTimes measured(const Mpi& mpi, const Request& request, const std::function<void()>& round) {
  return time_rounds(request.times, {.rank = mpi.rank,
                                     .round =
                                         [&] {
                                           // MPI's calls have no deadline of their own.
                                           ::alarm(request.timeout_s);
                                           round();
                                         },
                                     .meet = [] { MPI_Barrier(MPI_COMM_WORLD); },
                                     .slowest =
                                         [](double seconds) {
                                           MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE,
                                                         MPI_MAX, MPI_COMM_WORLD);
                                           return seconds;
                                         }});
}

void require(bool right, const char* what) {
  if (!right) {
    fmt::print(stderr, "mpi_peer: {}\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

void measure(const Request& request) {
  ::alarm(request.timeout_s);
  const Mpi mpi;
  RoundTimes times;
  std::optional<double> bytes;
  if (request.bits > 0) {
    const auto part =
        static_cast<int>(std::ceil(request.bits * static_cast<double>(request.elements) / 8));
    require(mpi.size > 1, "neighbours need two processes");
    const auto around = neighbours_of(mpi);
    std::vector<char> out;
    std::vector<char> in;
    times = measured(mpi, request, swap_with_neighbours(around, mpi.rank, part, out, in));
    require(in.front() == static_cast<char>(around.front()) &&
                in.back() == static_cast<char>(around.back()),
            "the neighbours' buffers did not come");
    bytes = static_cast<double>(around.size()) * part;
  } else {
    std::vector<float> gradient(request.elements);
    std::vector<float> x(request.elements, 0.0F);
    times = measured(mpi, request, allreduce(mpi, gradient, x));
    const float expected = static_cast<float>(mpi.size + 1) / 2;
    require(std::abs(gradient.front() - expected) <= 0.01F * expected, "the average is wrong");
  }
  if (mpi.rank == 0) {
    print_round_times(times, bytes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("One process of a job that averages, or swaps with neighbours, through MPI",
                   "mpi_peer");
  Request request;
  add_options(program, request);
  return sotto::peers::run_peer(program, argc, argv, [&] { measure(request); });
}
