// NCCL's calls through NCCL.
#include <nccl.h>

#include <cstring>

#include <fmt/format.h>

#include "../api.h"

namespace sotto::internal {
namespace {

static_assert(sizeof(ncclUniqueId) == std::tuple_size_v<CommunicatorId>);

/// That something was begun counts as success: settled() tells how it ends.
Status told(ncclResult_t result, std::string_view doing, Communicator communicator = nullptr) {
  if (result == ncclSuccess || result == ncclInProgress) {
    return {};
  }
  const char* detail = ncclGetLastError(communicator);
  return {Fault::io, fmt::format("NCCL, {}: {}{}{}", doing, ncclGetErrorString(result),
                                 detail == nullptr || *detail == '\0' ? "" : ": ",
                                 detail == nullptr ? "" : detail)};
}

class NcclLibrary final : public NcclApi {
 public:
  Result<CommunicatorId> make_id() override {
    ncclUniqueId unique{};
    if (auto status = told(ncclGetUniqueId(&unique), "an id for the communicator"); !status.ok()) {
      return status;
    }
    CommunicatorId id{};
    std::memcpy(id.data(), &unique, sizeof unique);
    return id;
  }
  Result<Communicator> join(int ranks, const CommunicatorId& id, Rank rank) override {
    ncclUniqueId unique{};
    std::memcpy(&unique, id.data(), sizeof unique);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t communicator = nullptr;
    if (auto status = told(ncclCommInitRankConfig(&communicator, ranks, unique, rank, &config),
                           "joining the communicator");
        !status.ok()) {
      if (communicator != nullptr) {
        abort(communicator);
      }
      return status;
    }
    return communicator;
  }
  Result<bool> settled(Communicator communicator) override {
    ncclResult_t state = ncclSuccess;
    ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
    if (asked != ncclSuccess && asked != ncclInProgress) {
      state = asked;
    }
    if (auto status = told(state, "the communicator", communicator); !status.ok()) {
      return status;
    }
    return state == ncclSuccess;
  }
  Status begin_group() override { return told(ncclGroupStart(), "a group"); }
  Status send(std::span<const std::byte> memory, Rank to, Communicator communicator,
              DeviceStream stream) override {
    return told(ncclSend(memory.data(), memory.size(), ncclUint8, to, communicator, stream),
                "sending", communicator);
  }
  Status receive(std::span<std::byte> memory, Rank from, Communicator communicator,
                 DeviceStream stream) override {
    return told(ncclRecv(memory.data(), memory.size(), ncclUint8, from, communicator, stream),
                "receiving", communicator);
  }
  Status end_group() override { return told(ncclGroupEnd(), "a group"); }
  Status finalize(Communicator communicator) override {
    return told(ncclCommFinalize(communicator), "flushing the communicator", communicator);
  }
  void destroy(Communicator communicator) override { (void)ncclCommDestroy(communicator); }
  void abort(Communicator communicator) override { static_cast<void>(ncclCommAbort(communicator)); }
};

}  // namespace

std::shared_ptr<NcclApi> make_nccl_library() { return std::make_shared<NcclLibrary>(); }

}  // namespace sotto::internal
