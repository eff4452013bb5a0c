#include "network_namespace.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto::netlab {
namespace {

constexpr const char* kDevice = "link";
constexpr const char* kAlias = "link:free";
/// Packets that the device holds until the switch reads them: no burst of TCP's is longer.
constexpr int kDeviceQueue = 16'384;
constexpr std::uint32_t kNetmask = 0xFFFFFF00;

[[noreturn]] void fail(const char* what) {
  throw Error(
      fmt::format("{}: {}; an emulated network needs Linux, root (CAP_SYS_ADMIN and "
                  "CAP_NET_ADMIN) and /dev/net/tun",
                  what, std::generic_category().message(errno)));
}

void require(bool done, const char* what) {
  if (!done) {
    fail(what);
  }
}

ifreq request_for(const char* name) {
  ifreq request = {};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  return request;
}

void set_address(int socket, unsigned long call, const char* name, std::uint32_t address) {
  ifreq request = request_for(name);
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  std::memcpy(&request.ifr_addr, &in, sizeof in);
  require(::ioctl(socket, call, &request) == 0, "setting an address");
}

void bring_up(int socket, const char* name) {
  ifreq request = request_for(name);
  require(::ioctl(socket, SIOCGIFFLAGS, &request) == 0, "looking at a device");
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
  require(::ioctl(socket, SIOCSIFFLAGS, &request) == 0, "bringing a device up");
}

FileDescriptor open_device() {
  FileDescriptor device(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  require(device.get() >= 0, "/dev/net/tun");
  ifreq request = request_for(kDevice);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  require(::ioctl(device.get(), TUNSETIFF, &request) == 0, "making a TUN device");
  constexpr unsigned int offload = TUN_F_CSUM | TUN_F_TSO4;
  require(::ioctl(device.get(), TUNSETOFFLOAD, offload) == 0, "setting up a TUN device");
  return device;
}

void set_up_addresses(Host host, bool free_net) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  require(socket.get() >= 0, "a socket");
  const auto number = static_cast<std::uint32_t>(host) + 1;
  set_address(socket.get(), SIOCSIFADDR, kDevice, kShapedNet + number);
  set_address(socket.get(), SIOCSIFNETMASK, kDevice, kNetmask);
  if (free_net) {
    set_address(socket.get(), SIOCSIFADDR, kAlias, kFreeNet + number);
    set_address(socket.get(), SIOCSIFNETMASK, kAlias, kNetmask);
  }
  ifreq request = request_for(kDevice);
  request.ifr_qlen = kDeviceQueue;
  require(::ioctl(socket.get(), SIOCSIFTXQLEN, &request) == 0, "setting a queue's length");
  bring_up(socket.get(), "lo");
  bring_up(socket.get(), kDevice);
}

/// Settings of this thread's namespace.
void set(const char* name, const char* value) {
  std::ofstream file(fmt::format("/proc/sys/net/{}", name));
  file << value;
  file.flush();
  if (!file) {
    throw Error(fmt::format("/proc/sys/net/{} could not be set to {}; it needs root", name, value));
  }
}

void set_congestion(const std::string& congestion) {
  try {
    set("ipv4/tcp_congestion_control", congestion.c_str());
  } catch (const Error&) {
    throw Error(
        fmt::format("this kernel lets no namespace have TCP's congestion control '{}'; where it "
                    "has it (modprobe "
                    "tcp_{}), name it in /proc/sys/net/ipv4/tcp_allowed_congestion_control",
                    congestion, congestion));
  }
}

void settle_tcp(const std::string& congestion) {
  set("ipv6/conf/all/disable_ipv6", "1");
  // Results must not depend on what this machine prefers.
  set_congestion(congestion);
  // As much as 1 Gbit/s and 100 ms there and back have on their way, and more: by default a
  // connection of this kernel would fill a third of such a link.
  set("ipv4/tcp_rmem", "4096 131072 67108864");
  set("ipv4/tcp_wmem", "4096 16384 33554432");
  // One run must not start with what the kernel learned in another.
  set("ipv4/tcp_no_metrics_save", "1");
}

std::string address_text(std::uint32_t net, Host host) {
  const std::uint32_t address = net + static_cast<std::uint32_t>(host) + 1;
  return fmt::format("{}.{}.{}.{}", address >> 24U, address >> 16U & 255U, address >> 8U & 255U,
                     address & 255U);
}

/// Runs `work` in a thread of its own and passes its exception on.
void in_thread(const std::function<void()>& work) {
  std::exception_ptr error;
  std::thread thread([&] {
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
  });
  thread.join();
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace

NetworkNamespace::NetworkNamespace(Host host, bool free_net, const std::string& congestion) {
  in_thread([&] {
    require(::unshare(CLONE_NEWNET) == 0, "making a network namespace");
    namespace_ = FileDescriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    require(namespace_.get() >= 0, "/proc/thread-self/ns/net");
    settle_tcp(congestion);
    device_ = open_device();
    set_up_addresses(host, free_net);
  });
}

void NetworkNamespace::inside(const std::function<void()>& work) const {
  in_thread([&] {
    require(::setns(fd(), CLONE_NEWNET) == 0, "entering a network namespace");
    work();
  });
}

std::string shaped_address(Host host) { return address_text(kShapedNet, host); }
std::string free_address(Host host) { return address_text(kFreeNet, host); }

std::optional<std::string> unavailable() {
  try {
    const NetworkNamespace probe(0);
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace sotto::netlab
