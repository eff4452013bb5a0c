#include <sotto/observe/monitor.h>

#include <httplib.h>

#include <csignal>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>

namespace sotto {
namespace {

using namespace std::chrono_literals;

/// Each is held for kPatience by a client that says nothing.
constexpr std::size_t kThreads = 8;
constexpr std::size_t kWaiting = 16;
constexpr std::size_t kMostRequest = 1024;
constexpr std::size_t kMostAnswer = std::size_t{16} << 20;
constexpr auto kPatience = 1s;

/// A few threads, and a few jobs that wait for one. Where there are more, the thread that brings
/// one waits: so connections stay in the kernel's queue, which is short.
class BoundedPool final : public httplib::TaskQueue {
 public:
  BoundedPool() {
    threads_ = start_threads(
        kThreads, "the monitor", [this](std::size_t) { work(); }, [this] { end(); });
  }
  ~BoundedPool() override { shutdown(); }
  BoundedPool(const BoundedPool&) = delete;
  BoundedPool& operator=(const BoundedPool&) = delete;

  void enqueue(std::function<void()> job) override {
    std::unique_lock lock(mutex_);
    change_.wait(lock, [this] { return jobs_.size() < kWaiting; });
    jobs_.push_back(std::move(job));
    change_.notify_all();
  }
  void shutdown() final {
    end();
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
  }

 private:
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    change_.notify_all();
  }
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      change_.wait(lock, [this] { return ended_ || !jobs_.empty(); });
      if (jobs_.empty()) {
        return;
      }
      const auto job = std::move(jobs_.front());
      jobs_.pop_front();
      change_.notify_all();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable change_;
  std::deque<std::function<void()>> jobs_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

bool names_this_host(std::string_view host) {
  if (host.starts_with('[')) {
    host = host.substr(0, host.find(']') + 1);
  } else {
    host = host.substr(0, host.find(':'));
  }
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]";
}

/// A server; what making one does to the process's SIGPIPE is undone.
std::unique_ptr<httplib::Server> make_server() {
  struct sigaction before {};
  ::sigaction(SIGPIPE, nullptr, &before);
  auto server = std::make_unique<httplib::Server>();
  ::sigaction(SIGPIPE, &before, nullptr);
  return server;
}

/// Makes a client that is gone an error and no signal, in this thread and those that it starts.
void block_sigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

struct Monitor::Parts {
  const std::unique_ptr<httplib::Server> owned = make_server();
  httplib::Server& server = *owned;
  /// Pool of threads, until the server has it.
  std::unique_ptr<BoundedPool> pool = std::make_unique<BoundedPool>();
  std::thread thread;
};

Monitor::Monitor(const MonitorAddress& address, std::vector<MonitorPage> pages)
    : parts_(std::make_unique<Parts>()) {
  httplib::Server& server = parts_->server;
  server.new_task_queue = [this] { return parts_->pool.release(); };
  server.set_keep_alive_max_count(1);
  server.set_socket_options([](int socket) {
    const int on = 1;  // and not SO_REUSEPORT, with which two sites could have one port
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  });
  server.set_read_timeout(kPatience);
  server.set_write_timeout(kPatience);
  server.set_payload_max_length(kMostRequest);
  server.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    if (request.method == "GET" && names_this_host(request.get_header_value("Host"))) {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    response.status = request.method == "GET" ? 403 : 405;
    return httplib::Server::HandlerResponse::Handled;
  });
  for (MonitorPage& page : pages) {
    server.Get(page.path, [page](const httplib::Request&, httplib::Response& response) {
      response.set_content(page.make(), page.type);
    });
  }
  server.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ok\n", "text/plain");
  });
  if (!server.bind_to_port(address.host, address.port)) {
    throw std::runtime_error(fmt::format("the monitor cannot listen at {}:{}: is the port taken?",
                                         address.host, address.port));
  }
  parts_->thread = start_thread("the monitor", [&server] {
    block_sigpipe();
    server.listen_after_bind();
  });
  while (!server.is_running()) {
    std::this_thread::sleep_for(1ms);  // until then it could not be stopped
  }
}

Monitor::~Monitor() {
  parts_->server.stop();
  parts_->thread.join();
}

std::string ask_monitor(const MonitorAddress& address, const std::string& path) {
  httplib::Client client(address.host, address.port);
  client.set_connection_timeout(kPatience);
  client.set_read_timeout(2 * kPatience);
  std::string answer;
  const auto result = client.Get(path, [&](const char* data, std::size_t size) {
    answer.append(data, size);
    return answer.size() <= kMostAnswer;
  });
  if (result && result->status != 200) {
    throw std::runtime_error(
        fmt::format("what answers at {}:{} has no page {}", address.host, address.port, path));
  }
  if (!result) {
    throw std::runtime_error(
        fmt::format("nothing answers at {}:{}; is it running?", address.host, address.port));
  }
  return answer;
}

}  // namespace sotto
