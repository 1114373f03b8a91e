# What a user does in the project while a run goes on: edits as editors save, commits, settings.
# Nothing is written through a name of the project, for the run could have made it a link.
n=0
git() { timeout 1 git -c user.name=H -c user.email=h@example.org "$@" > /dev/null 2>&1; }
save() { echo "$2" > ../saved.$$ && mv -fT ../saved.$$ "$1" 2> /dev/null; }
while [ -e ../running ]; do
    n=$((n + 1))
    save hello.txt "host $n"
    save .envrc "# host $n"
    git add hello.txt
    git commit -m "host $n"
    git config host.number "$n"
    save .mcp.json "{\"host\": $n}"
    git status
    git branch -f "host$n"
done
rm -f ../saved.$$
true
