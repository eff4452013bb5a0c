// A round of neighbours on a ring through NCCL's sends and receives, as the transport nccl groups
// them, beside NCCL's own all-reduce of the same vector, on as many GPUs as there are:
//   nccl_bench ELEMENTS REPEATS JSON
// Frames have the length of the vector at 32, 8, 4 and 1 bit. The ratio is the round's time over
// the all-reduce's, medians in one run; with one GPU both are copies within it, and say little.
// dcd and ecd send the length of 32 bits whatever they compress to (docs/gpu.md).
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/nccl/api.h>

#include "number.h"

using namespace sotto;
using internal::DeviceMemory;
using internal::DeviceRoom;

namespace {

constexpr int kMostRanks = 8;
constexpr std::chrono::seconds kPatience{60};
const std::vector<int> kBits = {32, 8, 4, 1};

template <typename T>
T expect(Result<T> made) {
  if (!made) {
    throw Error(made.status().message());
  }
  return std::move(*made);
}

void expect(const Status& status) {
  if (!status.ok()) {
    throw Error(status.message());
  }
}

/// Looks until it is so; a minute is a failure.
void await(const std::function<Result<bool>()>& look) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!expect(look())) {
    if (std::chrono::steady_clock::now() > end) {
      throw Error("NCCL did not finish in a minute");
    }
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// One rank, in a thread of its own.
class BenchRank {
 public:
  BenchRank(int ranks, int rank, const internal::CommunicatorId& id, std::size_t elements)
      : ranks_(ranks),
        rank_(rank),
        device_(expect(internal::make_cuda_device(rank))),
        library_(internal::make_nccl_library()),
        communicator_(expect(library_->join(ranks, id, rank))),
        stream_(expect(device_->make_stream())),
        mark_(expect(device_->make_event())),
        out_(expect(DeviceMemory::make(*device_, DeviceRoom::device, 4 * elements))),
        left_(expect(DeviceMemory::make(*device_, DeviceRoom::device, 4 * elements))),
        right_(expect(DeviceMemory::make(*device_, DeviceRoom::device, 4 * elements))) {
    settle();
  }
  ~BenchRank() {
    library_->abort(communicator_);
    device_->destroy(mark_);
    device_->destroy(stream_);
  }
  BenchRank(const BenchRank&) = delete;
  BenchRank& operator=(const BenchRank&) = delete;

  void swap(std::size_t bytes) {
    const int next = (rank_ + 1) % ranks_;
    const int before = (rank_ + ranks_ - 1) % ranks_;
    expect(library_->begin_group());
    expect(library_->send(out_.bytes().first(bytes), next, communicator_, stream_));
    expect(library_->receive(left_.bytes().first(bytes), before, communicator_, stream_));
    if (ranks_ > 2) {
      expect(library_->send(out_.bytes().first(bytes), before, communicator_, stream_));
      expect(library_->receive(right_.bytes().first(bytes), next, communicator_, stream_));
    }
    expect(library_->end_group());
    finish();
  }
  void all_reduce(std::size_t elements) {
    const ncclResult_t result = ncclAllReduce(out_.bytes().data(), left_.bytes().data(), elements,
                                              ncclFloat32, ncclSum, communicator_, stream_);
    if (result != ncclSuccess && result != ncclInProgress) {
      throw Error(fmt::format("NCCL, all-reduce: {}", ncclGetErrorString(result)));
    }
    finish();
  }

 private:
  void settle() {
    await([&] { return library_->settled(communicator_); });
  }
  void finish() {
    settle();
    expect(device_->record(mark_, stream_));
    await([&] { return device_->passed(mark_); });
  }

  const int ranks_;
  const int rank_;
  const std::shared_ptr<internal::Device> device_;
  const std::shared_ptr<internal::NcclApi> library_;
  const internal::Communicator communicator_;
  const internal::DeviceStream stream_;
  const internal::DeviceEvent mark_;
  DeviceMemory out_;
  DeviceMemory left_;
  DeviceMemory right_;
};

/// The seconds of each contender at rank 0, the all-reduce first, then a round at each width. They
/// take turns, so that what disturbs one disturbs all.
std::vector<std::vector<double>> measure(int ranks, std::size_t elements, int repeats) {
  std::vector<std::vector<double>> seconds(1 + kBits.size());
  const auto id = expect(internal::make_nccl_library()->make_id());
  std::barrier together(ranks);
  const auto play = [&](int rank) {
    BenchRank self(ranks, rank, id, elements);
    for (int repeat = -1; repeat < repeats; ++repeat) {  // the first connects
      for (std::size_t which = 0; which < seconds.size(); ++which) {
        together.arrive_and_wait();
        const auto start = std::chrono::steady_clock::now();
        if (which == 0) {
          self.all_reduce(elements);
        } else {
          self.swap(elements * static_cast<std::size_t>(kBits[which - 1]) / 8);
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (rank == 0 && repeat >= 0) {
          seconds[which].push_back(took.count());
        }
      }
    }
  };
  // A rank that fails ends the program: the others would wait for it.
  const auto guarded = [&](int rank) {
    try {
      play(rank);
    } catch (const std::exception& failure) {
      fmt::print(stderr, "nccl_bench, rank {}: {}\n", rank, failure.what());
      std::_Exit(1);
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(guarded, rank);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return seconds;
}

void report(int ranks, std::size_t elements, const std::vector<std::vector<double>>& seconds,
            const std::string& path) {
  const double whole = median(seconds[0]);
  std::string json = fmt::format(
      "{{\n  \"gpus\": {},\n  \"elements\": {},\n  \"repeats\": {},\n"
      "  \"all_reduce_s\": {:.9f},\n  \"rounds\": [\n",
      ranks, elements, seconds[0].size(), whole);
  for (std::size_t i = 0; i < kBits.size(); ++i) {
    const auto& times = seconds[i + 1];
    const double ratio = median(times) / whole;
    const auto [least, most] = std::minmax_element(times.begin(), times.end());
    fmt::print("{} GPUs, {} elements, ring at {:>2} bits: {:.3f} of the all-reduce\n", ranks,
               elements, kBits[i], ratio);
    json += fmt::format("    {{\"bits\": {}, \"of_all_reduce\": {:.6f}, \"spread\": {:.6f}}}{}\n",
                        kBits[i], ratio, (*most - *least) / median(times),
                        i + 1 < kBits.size() ? "," : "");
  }
  std::ofstream(path) << json << "  ]\n}\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4) {
      throw Error("nccl_bench ELEMENTS REPEATS JSON");
    }
    const auto elements = number<std::size_t>(argv[1]);
    const int ranks = std::min(kMostRanks, internal::count_cuda_devices());
    if (ranks == 0) {
      throw Error("no device can be used");
    }
    report(ranks, elements, measure(ranks, elements, number<int>(argv[2])), argv[3]);
    return 0;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "nccl_bench: {}\n", failure.what());
    return 1;
  }
}
