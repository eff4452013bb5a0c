// Where input comes from: plain files, pipes, and what is neither.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/input_file.h>

namespace sotto::test::input_file_test {

namespace {

using namespace std::chrono_literals;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/sotto-input-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }
  std::string fifo(const std::string& name) const {
    REQUIRE(::mkfifo((*this / name).c_str(), 0600) == 0);
    return *this / name;
  }

 private:
  std::string path_;
};

/// As a shell hands a command's output over: /dev/fd/N of a pipe.
class Substitution {
 public:
  explicit Substitution(const std::string& text) {
    REQUIRE(::pipe(ends_) == 0);
    writer_ = std::thread([this, text] {
      sigset_t gone;  // a reader that had enough is no reason to end
      sigemptyset(&gone);
      sigaddset(&gone, SIGPIPE);
      ::pthread_sigmask(SIG_BLOCK, &gone, nullptr);
      std::size_t done = 0;
      while (done < text.size()) {
        const auto written = ::write(ends_[1], text.data() + done, text.size() - done);
        if (written <= 0) {
          break;
        }
        done += static_cast<std::size_t>(written);
      }
      ::close(ends_[1]);
    });
  }
  ~Substitution() {
    ::close(ends_[0]);
    writer_.join();
  }
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;
  std::string path() const { return fmt::format("/dev/fd/{}", ends_[0]); }

 private:
  int ends_[2] = {-1, -1};
  std::thread writer_;
};

void check_refused(const Result<std::string>& found, std::string_view why) {
  REQUIRE_FALSE(found.ok());
  CHECK_MESSAGE(found.status().message().find(why) != std::string::npos, found.status().message());
}

constexpr InputOptions kHasty = {.nobody = 20ms, .silence = 20ms};

void ignore(int /*signal*/) {}

}  // namespace

TEST_CASE("input: a plain file is read to its end, up to a limit") {
  const Folder folder;
  std::string text = "first\nsecond";
  CHECK(*read_input(folder.file("a", text), 12) == text);
  check_refused(read_input(folder / "a", 11), "more than 11 bytes");
  CHECK(*read_first_line(folder / "a", 5) == "first");
  check_refused(read_first_line(folder.file("b", "123456"), 5), "more than 5 bytes");
  CHECK(read_input(folder.file("empty", ""), 0)->empty());
  CHECK(read_first_line(folder / "empty", 10)->empty());
  text.assign(300'000, 'x');
  text += "\n";
  CHECK(read_input(folder.file("long", text), std::numeric_limits<std::uint64_t>::max())->size() ==
        text.size());
  CHECK(read_first_line(folder / "long", 300'000)->size() == 300'000);
  CHECK(read_bytes(folder / "long", 300'001)->size() == 300'001);
  CHECK_FALSE(read_bytes(folder / "long", 300'000).ok());
  // What has no size is read all the same.
  CHECK(read_input("/proc/self/status", 1 << 20)->starts_with("Name:"));
  std::filesystem::create_symlink(folder / "a", folder / "link");
  CHECK(read_input(folder / "link", 100).ok());
}

TEST_CASE("input: what is no file is refused, and nothing waits for it") {
  const Folder folder;
  check_refused(read_input(folder / "none", 10), "there is no such file");
  check_refused(read_input(folder / "", 10),
                "it is a folder: there is no such file; name a regular file, or a pipe");
  check_refused(read_input("/dev/zero", 10), "it is a device");
  check_refused(read_input("/dev/null", 10), "it is a device");
  check_refused(read_first_line("/dev/zero", 10), "it is a device");
  check_refused(read_input(std::string("a\0b", 3), 10), "zero byte");
  check_refused(read_input(folder.file("x", "") + "/y", 10), "it cannot be read: Not a directory");
  const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder / "socket").c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  check_refused(read_input(folder / "socket", 10), "it is a socket");
  ::close(server);
  const auto pipe = read_bytes(folder.fifo("fifo"), 10);
  REQUIRE_FALSE(pipe.ok());
  CHECK(pipe.status().message() == "it is a pipe; a plain file is needed");
}

TEST_CASE("input: a pipe is read to its end, once, and is then known") {
  const std::string text(200'000, 'p');
  const Substitution pipe(text);
  for (int time = 0; time < 2; ++time) {
    const bool same = *read_input(pipe.path(), 200'000) == text;
    CHECK(same);
  }
  check_refused(read_input(pipe.path(), 100), "more than 100 bytes");
  const Substitution lines("one\ntwo\n");
  CHECK(*read_first_line(lines.path(), 100) == "one");
  CHECK(*read_input(lines.path(), 100) == "one\ntwo\n");
  const Substitution endless(std::string(1 << 20, 'y'));
  check_refused(read_input(endless.path(), 1000), "more than 1000 bytes");
  const Substitution empty("");
  check_refused(read_input(empty.path(), 1000), "nothing came through this pipe");
}

TEST_CASE("input: a pipe's first line is read, whatever follows it") {
  for (const std::size_t more : {std::size_t{0}, std::size_t{7}, std::size_t{1} << 20}) {
    CAPTURE(more);
    const Substitution rows("1,2\n" + std::string(more, 'x'));
    for (int time = 0; time < 2; ++time) {
      const auto line = read_first_line(rows.path(), 5);
      REQUIRE_MESSAGE(line.ok(), line.status().message());
      CHECK(*line == "1,2");
    }
  }
  const Substitution rows("one\n" + std::string(1 << 20, 'x'));
  CHECK(*read_first_line(rows.path(), 5) == "one");
  CHECK(read_input(rows.path(), 2 << 20)->size() == (1 << 20) + 4);  // goes on behind it
  const Substitution wide("123456\n7\n");
  check_refused(read_first_line(wide.path(), 5), "more than 5 bytes");
  const Substitution endless(std::string(1 << 20, 'y'));
  check_refused(read_first_line(endless.path(), 5), "more than 5 bytes");
  const Substitution lone("no end");
  CHECK(*read_first_line(lone.path(), 6) == "no end");
}

TEST_CASE("input: a first line is there before its pipe ends") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  REQUIRE(::write(ends[1], "1,2\n", 4) == 4);
  const std::string path = fmt::format("/dev/fd/{}", ends[0]);
  const auto line = read_first_line(path, 5, kHasty);
  REQUIRE_MESSAGE(line.ok(), line.status().message());
  CHECK(*line == "1,2");
  REQUIRE(::write(ends[1], "3,4\n", 4) == 4);
  CHECK(*read_first_line(path, 5, kHasty) == "1,2");
  ::close(ends[1]);
  CHECK(*read_input(path, 8, kHasty) == "1,2\n3,4\n");
  ::close(ends[0]);
}

TEST_CASE("input: an open file is read as it was opened, whatever its path names by now") {
  const Folder folder;
  auto file = InputFile::open(folder.file("list", "trusted"));
  REQUIRE(file.ok());
  folder.file("other", "forged");
  std::filesystem::rename(folder / "other", folder / "list");
  CHECK(*read_input(*file, 10) == "trusted");
}

TEST_CASE("input: a pipe with a name waits for its writer, and for no other reason") {
  const Folder folder;
  const std::string path = folder.fifo("fifo");
  check_refused(read_input(path, 10, kHasty), "nobody writes into this pipe");
  std::thread writer([&] { std::ofstream(path) << "late"; });
  CHECK(*read_input(path, 10) == "late");
  writer.join();
  CHECK(*read_input(path, 10) == "late");
  const std::string other = folder.fifo("other");
  const int silent = ::open(other.c_str(), O_RDWR | O_CLOEXEC);
  check_refused(read_input(other, 10, kHasty), "fallen silent");
  ::close(silent);
}

TEST_CASE("input: a signal ends the wait for a pipe") {
  const Folder folder;
  const std::string path = folder.fifo("fifo");
  struct sigaction act {};
  struct sigaction before {};
  act.sa_handler = ignore;
  ::sigaction(SIGUSR1, &act, &before);
  std::atomic<bool> over{false};
  Result<std::string> found = std::string();
  std::thread reader([&] {
    found = read_input(path, 10);
    over = true;
  });
  while (!over) {
    ::pthread_kill(reader.native_handle(), SIGUSR1);  // until it waits
    std::this_thread::yield();
  }
  reader.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  check_refused(found, "a signal came");
}

}  // namespace sotto::test::input_file_test
